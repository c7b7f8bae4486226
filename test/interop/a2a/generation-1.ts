import { Role, taskStateToJSON, type Artifact, type Message, type Part, type StreamResponse, type Task, type TaskStatus } from 'a2a1'
import { ClientFactory, ClientFactoryOptions } from 'a2a1/client'
import * as errors from 'a2a1/errors'
import { randomUUID } from 'node:crypto'
import type {
  Answer,
  Client,
  Generation,
  Push,
  Said,
  SeenArtifact,
  SeenMessage,
  SeenPart,
  SeenTask,
  SendOptions,
  Update,
} from './client.ts'

/** `@a2a-js/sdk` 1.3.0. */
export const jsonRpc1: Generation = { name: '1.3.0 over JSON-RPC', version: '1.0', connect: (base) => connect(base, 'JSONRPC') }
export const rest1: Generation = { name: '1.3.0 over REST', version: '1.0', connect: (base) => connect(base, 'HTTP+JSON') }

async function connect(base: string, binding: 'JSONRPC' | 'HTTP+JSON'): Promise<Client> {
  const factory = new ClientFactory(ClientFactoryOptions.createFrom(ClientFactoryOptions.default, { preferredTransports: [binding] }))
  const client = await factory.createFromUrl(`${base}/`)
  const { name, description, capabilities } = await client.getAgentCard()
  return {
    card: { name, description, streaming: capabilities?.streaming === true, push: capabilities?.pushNotifications === true },
    async send(said, options = {}) {
      const answer = await client.sendMessage(request(said, options))
      return seenAnswer(answer)
    },
    async *stream(said) {
      for await (const update of client.sendMessageStream(request(said, {}))) yield seenUpdate(update)
    },
    get: async (id, historyLength) => seenTask(await client.getTask({ tenant: '', id, historyLength })),
    cancel: async (id) => seenTask(await client.cancelTask({ tenant: '', id, metadata: undefined })),
    async *subscribe(id) {
      for await (const update of client.resubscribeTask({ tenant: '', id })) yield seenUpdate(update)
    },
    setPush: async (taskId, push) => seenPush(await client.createTaskPushNotificationConfig(pushConfig(taskId, push))),
    getPush: async (taskId, id) => seenPush(await client.getTaskPushNotificationConfig({ tenant: '', taskId, id })),
    async listPush(taskId) {
      const { configs } = await client.listTaskPushNotificationConfig({ tenant: '', taskId, pageSize: 0, pageToken: '' })
      return configs.map(seenPush)
    },
    deletePush: (taskId, id) => client.deleteTaskPushNotificationConfig({ tenant: '', taskId, id }),
    kindOf,
  }
}

const KINDS = {
  TaskNotFoundError: errors.TaskNotFoundError,
  TaskNotCancelableError: errors.TaskNotCancelableError,
  UnsupportedOperationError: errors.UnsupportedOperationError,
  PushNotificationNotSupportedError: errors.PushNotificationNotSupportedError,
  ContentTypeNotSupportedError: errors.ContentTypeNotSupportedError,
  ExtendedAgentCardNotConfiguredError: errors.ExtendedAgentCardNotConfiguredError,
  VersionNotSupportedError: errors.VersionNotSupportedError,
  InvalidParamsError: errors.RequestMalformedError,
}

function kindOf(thrown: unknown): string {
  const [name] = Object.entries(KINDS).find(([, kind]) => thrown instanceof kind) ?? []
  return name ?? String(thrown)
}

function request({ parts, messageId = randomUUID(), task = '', context = '', metadata }: Said, { wait, historyLength, push }: SendOptions) {
  const message = { messageId, taskId: task, contextId: context, role: Role.ROLE_USER, parts: parts.map(part), metadata }
  return {
    tenant: '',
    message: { ...message, extensions: [], referenceTaskIds: [] },
    configuration: {
      acceptedOutputModes: [],
      historyLength,
      returnImmediately: wait === false,
      taskPushNotificationConfig: push && pushConfig('', push),
    },
    metadata: undefined,
  }
}

function part(given: SeenPart): Part {
  const content = ((): Part['content'] => {
    if ('text' in given) return { $case: 'text', value: given.text }
    if ('data' in given) return { $case: 'data', value: given.data }
    if (given.url !== undefined) return { $case: 'url', value: given.url }
    return { $case: 'raw', value: Buffer.from(given.bytes ?? '', 'base64') }
  })()
  const { name = '', type = '' } = 'text' in given || 'data' in given ? {} : given
  return { content, filename: name, mediaType: type, metadata: undefined }
}

function pushConfig(taskId: string, { id = '', url, token = '' }: Push) {
  return { tenant: '', taskId, id, url, token, authentication: undefined }
}

function seenPush({ id, url, token }: { id: string; url: string; token: string }): Push {
  return { id, url, ...(token !== '' && { token }) }
}

function seenPart({ content, filename, mediaType }: Part): SeenPart {
  const about = { ...(filename !== '' && { name: filename }), ...(mediaType !== '' && { type: mediaType }) }
  switch (content?.$case) {
    case 'text':
      return { text: content.value }
    case 'data':
      return { data: content.value as unknown }
    case 'url':
      return { url: content.value, ...about }
    case 'raw':
      return { bytes: Buffer.from(content.value).toString('base64'), ...about }
    case undefined:
      throw new Error('a part without content')
  }
}

function seenArtifact({ artifactId, parts }: Artifact): SeenArtifact {
  return { id: artifactId, parts: parts.map(seenPart) }
}

function seenMessage({ messageId, role, parts, metadata }: Message): SeenMessage {
  return { id: messageId, role: role === Role.ROLE_AGENT ? 'agent' : 'user', parts: parts.map(seenPart), ...(metadata && { metadata }) }
}

function seenStatus(status: TaskStatus | undefined): Pick<SeenTask, 'state' | 'says'> {
  if (!status) throw new Error('there is no status')
  const state = taskStateToJSON(status.state).replace('TASK_STATE_', '').toLowerCase().replaceAll('_', '-')
  return { state, ...(status.message && { says: seenMessage(status.message) }) }
}

function seenTask({ id, contextId, status, artifacts, history }: Task): SeenTask {
  return { id, context: contextId, ...seenStatus(status), artifacts: artifacts.map(seenArtifact), history: history.map(seenMessage) }
}

function seenAnswer(answer: Message | Task): Answer {
  return 'messageId' in answer ? { message: seenMessage(answer) } : { task: seenTask(answer) }
}

function seenUpdate({ payload }: StreamResponse): Update {
  switch (payload?.$case) {
    case 'task':
      return { task: seenTask(payload.value) }
    case 'message':
      return { message: seenMessage(payload.value) }
    case 'statusUpdate':
      return { status: { id: payload.value.taskId, ...seenStatus(payload.value.status) } }
    case 'artifactUpdate': {
      const { artifact, append, lastChunk } = payload.value
      if (!artifact) throw new Error('there is no artifact')
      return { chunk: seenArtifact(artifact), append, last: lastChunk }
    }
    case undefined:
      throw new Error('an update without a payload')
  }
}
