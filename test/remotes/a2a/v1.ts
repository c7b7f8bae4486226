/** A2A 1.0. */
import { REST_STATUS, restRead } from './rest.ts'
import {
  CONTEXT,
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

const partV1 = (part: Part): Fields => part
export const stateV1 = (state: State): string => `TASK_STATE_${state.toUpperCase().replace('-', '_')}`
export const messageV1 = ({ parts, id = crypto.randomUUID(), metadata }: Said): Fields => ({
  messageId: id,
  role: 'ROLE_AGENT',
  parts: parts.map(partV1),
  contextId: CONTEXT,
  taskId: TASK,
  ...(metadata && { metadata }),
})
const statusV1 = (state: State, said?: Said): Fields => ({
  state: stateV1(state),
  timestamp: '2026-01-01T00:00:00.000Z',
  ...(said && { message: messageV1(said) }),
})
export const artifactV1 = ({ id, parts, name }: Made): Fields => ({
  artifactId: id,
  parts: parts.map(partV1),
  ...(name !== undefined && { name }),
})

function encodeV1(event: Event): Fields {
  if ('task' in event) {
    const { task, said, made = [], metadata } = event
    return {
      task: { id: TASK, contextId: CONTEXT, status: statusV1(task, said), artifacts: made.map(artifactV1), ...(metadata && { metadata }) },
    }
  }
  if ('status' in event)
    return { statusUpdate: { ...ids, status: statusV1(event.status, event.said), ...(event.metadata && { metadata: event.metadata }) } }
  if ('artifact' in event) return { artifactUpdate: { ...ids, artifact: artifactV1(event.artifact), append: event.append ?? false } }
  const { taskId: _, ...message } = messageV1(event.message)
  return { message }
}

const cardV1 = (url: string, streaming: boolean, binding: string): Fields => ({
  name: 'Peer',
  description: 'A peer of 1.0',
  version: '3.2.1',
  supportedInterfaces: [
    { url: 'http://127.0.0.1:9/grpc', protocolBinding: 'GRPC', protocolVersion: '1.0' },
    { url: `${url}/agent`, protocolBinding: binding, protocolVersion: '1.0', tenant: 'acme' },
  ],
  capabilities: { streaming },
  defaultInputModes: ['text/plain', 'image/png'],
  defaultOutputModes: ['text/plain'],
  skills: [{ id: 'talk', name: 'Talk', description: 'Talks', tags: ['talk'] }],
})

export const v1JsonRpc: Wire = {
  name: '1.0 over JSON-RPC',
  cardPath: '/.well-known/agent-card.json',
  card: (url, streaming) => cardV1(url, streaming, 'JSONRPC'),
  read: rpcRead({
    SendMessage: 'send',
    SendStreamingMessage: 'stream',
    GetTask: 'get',
    CancelTask: 'cancel',
    SubscribeToTask: 'subscribe',
  }),
  encode: encodeV1,
  // GetTask and CancelTask give the task itself.
  wrap: (result, body) => rpcWrap(/^(Get|Cancel)/.test(body['method']) ? result['task'] : result, body),
  failure: rpcFailure,
}

export const v1Rest: Wire = {
  name: '1.0 over REST',
  cardPath: '/.well-known/agent-card.json',
  card: (url, streaming) => cardV1(url, streaming, 'HTTP+JSON'),
  read: restRead('/agent/acme/'),
  encode: encodeV1,
  wrap: (result, body) => (body['whole'] ? result['task'] : result),
  failure(code, message) {
    const [status, rpc, reason] = REST_STATUS[code] ?? [500, 'INTERNAL', 'INTERNAL']
    const details = [{ '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason, domain: 'a2a-protocol.org' }]
    return { status, body: { error: { code: status, status: rpc, message, details } } }
  },
}
