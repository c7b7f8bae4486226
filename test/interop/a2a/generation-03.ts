import {
  AuthenticatedExtendedCardNotConfiguredError,
  ClientFactory,
  ClientFactoryOptions,
  ContentTypeNotSupportedError,
  PushNotificationNotSupportedError,
  TaskNotCancelableError,
  TaskNotFoundError,
  UnsupportedOperationError,
} from 'a2a03/client'
import type { Client, Generation } from './client.ts'
import { legacyRequest, seenAnswer, seenPush, seenTask, seenUpdate } from './seen-legacy.ts'

/** `@a2a-js/sdk` 0.3.14. */
export const jsonRpc03: Generation = { name: '0.3.14 over JSON-RPC', version: '0.3', connect: (base) => connect(base, 'JSONRPC') }
export const rest03: Generation = {
  name: '0.3.14 over REST',
  version: '0.3',
  loses: true,
  connect: (base) => connect(base, 'HTTP+JSON'),
}

async function connect(base: string, binding: 'JSONRPC' | 'HTTP+JSON'): Promise<Client> {
  const factory = new ClientFactory(ClientFactoryOptions.createFrom(ClientFactoryOptions.default, { preferredTransports: [binding] }))
  const client = await factory.createFromUrl(`${base}/`)
  const { name, description, capabilities } = await client.getAgentCard()
  return {
    card: { name, description, streaming: capabilities.streaming === true, push: capabilities.pushNotifications === true },
    send: async (said, options = {}) => seenAnswer(await client.sendMessage(legacyRequest(said, options))),
    async *stream(said) {
      for await (const update of client.sendMessageStream(legacyRequest(said, {}))) yield seenUpdate(update)
    },
    get: async (id, historyLength) => seenTask(await client.getTask({ id, ...(historyLength !== undefined && { historyLength }) })),
    cancel: async (id) => seenTask(await client.cancelTask({ id })),
    async *subscribe(id) {
      for await (const update of client.resubscribeTask({ id })) yield seenUpdate(update)
    },
    async setPush(taskId, push) {
      const set = await client.setTaskPushNotificationConfig({ taskId, pushNotificationConfig: push })
      return seenPush(set.pushNotificationConfig)
    },
    async getPush(id, pushNotificationConfigId) {
      // Its type lacks the id of the config, which over REST it insists on.
      const asked = { id, pushNotificationConfigId }
      return seenPush((await client.getTaskPushNotificationConfig(asked)).pushNotificationConfig)
    },
    async listPush(id) {
      const configs = await client.listTaskPushNotificationConfig({ id })
      return configs.map(({ pushNotificationConfig }) => seenPush(pushNotificationConfig))
    },
    deletePush: (id, pushNotificationConfigId) => client.deleteTaskPushNotificationConfig({ id, pushNotificationConfigId }),
    kindOf,
  }
}

const KINDS = {
  TaskNotFoundError,
  TaskNotCancelableError,
  UnsupportedOperationError,
  PushNotificationNotSupportedError,
  ContentTypeNotSupportedError,
  ExtendedAgentCardNotConfiguredError: AuthenticatedExtendedCardNotConfiguredError,
}

function kindOf(thrown: unknown): string {
  // Of what comes in a stream, it is the cause.
  const causes = [thrown, thrown instanceof Error ? thrown.cause : undefined]
  const [name] = Object.entries(KINDS).find(([, kind]) => causes.some((cause) => cause instanceof kind)) ?? []
  // It has no class for what is wrong with a request: the message names the code.
  return name ?? (/-32602/.test(String(thrown)) ? 'InvalidParamsError' : String(thrown))
}
