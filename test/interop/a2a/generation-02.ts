import { A2AClient } from 'a2a02/client'
import type { Message, MessageSendParams, Task } from 'a2a03'
import type { Client, Generation } from './client.ts'
import { legacyRequest, seenAnswer, seenPush, seenTask, seenUpdate } from './seen-legacy.ts'

/** `@a2a-js/sdk` 0.2.5. What is wrong it returns as it came; there are no classes for it. */
export const jsonRpc02: Generation = { name: '0.2.5 over JSON-RPC', version: '0.2', connect }

class Refused extends Error {
  readonly code: number

  constructor({ code, message }: { readonly code: number; readonly message: string }) {
    super(message)
    this.code = code
  }
}

/** Both generations write the same; only the names of the types moved. */
type Params = Parameters<A2AClient['sendMessage']>[0]
const params = (given: MessageSendParams) => given as unknown as Params

async function connect(base: string): Promise<Client> {
  const client = new A2AClient(base)
  const { name, description, capabilities } = await client.getAgentCard()
  return {
    card: { name, description, streaming: capabilities.streaming === true, push: capabilities.pushNotifications === true },
    send: async (said, options = {}) =>
      seenAnswer(result(await client.sendMessage(params(legacyRequest(said, options)))) as Message | Task),
    async *stream(said) {
      for await (const update of client.sendMessageStream(params(legacyRequest(said, {})))) yield seenUpdate(update as Message | Task)
    },
    get: async (id, historyLength) =>
      seenTask(result(await client.getTask({ id, ...(historyLength !== undefined && { historyLength }) })) as Task),
    cancel: async (id) => seenTask(result(await client.cancelTask({ id })) as Task),
    async *subscribe(id) {
      for await (const update of client.resubscribeTask({ id })) yield seenUpdate(update as Message | Task)
    },
    async setPush(taskId, push) {
      const set = result(await client.setTaskPushNotificationConfig({ taskId, pushNotificationConfig: push })) as Pushed
      return seenPush(set.pushNotificationConfig)
    },
    getPush: async (id) => seenPush((result(await client.getTaskPushNotificationConfig({ id })) as Pushed).pushNotificationConfig),
    kindOf,
  }
}

interface Pushed {
  readonly pushNotificationConfig: { id?: string; url: string; token?: string }
}

function result(response: object): unknown {
  if ('error' in response) throw new Refused(response.error as { code: number; message: string })
  return 'result' in response ? response.result : undefined
}

const CODES = new Map([
  [-32001, 'TaskNotFoundError'],
  [-32002, 'TaskNotCancelableError'],
  [-32003, 'PushNotificationNotSupportedError'],
  [-32004, 'UnsupportedOperationError'],
  [-32005, 'ContentTypeNotSupportedError'],
  [-32602, 'InvalidParamsError'],
])

function kindOf(thrown: unknown): string {
  // A stream that is refused throws with the code in its text.
  const code = thrown instanceof Refused ? thrown.code : Number(/-32\d{3}/.exec(String(thrown))?.[0])
  return CODES.get(code) ?? String(thrown)
}
