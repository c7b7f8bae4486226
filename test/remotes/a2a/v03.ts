/** A2A 0.2 and 0.3. */
import {
  CONTEXT,
  FINAL,
  ids,
  rpcFailure,
  rpcRead,
  rpcWrap,
  TASK,
  type Event,
  type Fields,
  type Made,
  type Part,
  type Said,
  type State,
  type Wire,
} from './wire.ts'

export const partKind = (part: Part, key: string): Fields => {
  if ('text' in part) return { [key]: 'text', text: part.text }
  if ('data' in part) return { [key]: 'data', data: part.data }
  if ('url' in part) return { [key]: 'file', file: { uri: part.url, mimeType: part.mediaType } }
  return { [key]: 'file', file: { bytes: part.raw, mimeType: part.mediaType, ...(part.filename !== undefined && { name: part.filename }) } }
}
const messageV03 = ({ parts, id = crypto.randomUUID(), metadata }: Said): Fields => ({
  kind: 'message',
  messageId: id,
  role: 'agent',
  parts: parts.map((part) => partKind(part, 'kind')),
  contextId: CONTEXT,
  ...(metadata && { metadata }),
})
const statusV03 = (state: State, said?: Said): Fields => ({ state, ...(said && { message: messageV03(said) }) })
const artifactV03 = ({ id, parts, name }: Made): Fields => ({
  artifactId: id,
  parts: parts.map((part) => partKind(part, 'kind')),
  ...(name !== undefined && { name }),
})

function encodeV03(event: Event): Fields {
  if ('task' in event) {
    const { task, said, made = [], metadata } = event
    const status = statusV03(task, said)
    return { kind: 'task', id: TASK, contextId: CONTEXT, status, artifacts: made.map(artifactV03), ...(metadata && { metadata }) }
  }
  if ('status' in event)
    return {
      kind: 'status-update',
      ...ids,
      status: statusV03(event.status, event.said),
      final: FINAL.has(event.status),
      ...(event.metadata && { metadata: event.metadata }),
    }
  if ('artifact' in event) return { kind: 'artifact-update', ...ids, artifact: artifactV03(event.artifact), append: event.append ?? false }
  return messageV03(event.message)
}

export const cardV03 = (url: string, streaming: boolean): Fields => ({
  name: 'Peer',
  description: 'A peer of 0.3',
  protocolVersion: '0.3.0',
  version: '3.2.1',
  url: `${url}/agent`,
  preferredTransport: 'JSONRPC',
  capabilities: { streaming },
  defaultInputModes: ['text/plain'],
  defaultOutputModes: ['text/plain'],
  skills: [],
})

export const v03JsonRpc: Wire = {
  name: '0.3 over JSON-RPC',
  cardPath: '/.well-known/agent-card.json',
  card: cardV03,
  read: rpcRead({
    'message/send': 'send',
    'message/stream': 'stream',
    'tasks/get': 'get',
    'tasks/cancel': 'cancel',
    'tasks/resubscribe': 'subscribe',
  }),
  encode: encodeV03,
  wrap: rpcWrap,
  failure: rpcFailure,
}

export const v02JsonRpc: Wire = {
  ...v03JsonRpc,
  name: '0.2 over JSON-RPC',
  cardPath: '/.well-known/agent.json',
  card(url, streaming) {
    const { protocolVersion: _, preferredTransport: __, ...card } = cardV03(url, streaming)
    return card
  },
}
