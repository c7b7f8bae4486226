/** A2A 0.1. */
import { partKind } from './v03.ts'
import { CONTEXT, FINAL, rpcFailure, rpcWrap, TASK, type Fields, type Made, type Op, type Said, type State, type Wire } from './wire.ts'

export const v01JsonRpc: Wire = {
  name: '0.1 over JSON-RPC',
  cardPath: '/.well-known/agent.json',
  card: (url, streaming) => ({ name: 'Peer', url: `${url}/agent`, version: '3.2.1', capabilities: { streaming }, skills: [] }),
  read(_, body) {
    const methods: Record<string, Op> = {
      'tasks/send': 'send',
      'tasks/sendSubscribe': 'stream',
      'tasks/get': 'get',
      'tasks/cancel': 'cancel',
      'tasks/resubscribe': 'subscribe',
    }
    const op = methods[body['method']]
    const { id, sessionId, message = {} } = body['params'] ?? {}
    return op && { op, message, taskId: id, contextId: sessionId }
  },
  encode(event) {
    const artifact = ({ id, parts, name }: Made, append?: boolean): Fields => ({
      index: Number(id.replaceAll(/\D/g, '') || 0),
      parts: parts.map((part) => partKind(part, 'type')),
      ...(name !== undefined && { name }),
      ...(append && { append }),
    })
    const status = (state: State, said?: Said): Fields => ({
      state,
      ...(said && {
        message: {
          role: 'agent',
          parts: said.parts.map((part) => partKind(part, 'type')),
          ...(said.metadata && { metadata: said.metadata }),
        },
      }),
    })
    if ('task' in event) {
      const { task, said, made = [], metadata } = event
      return {
        id: TASK,
        sessionId: CONTEXT,
        status: status(task, said),
        artifacts: made.map((one) => artifact(one)),
        ...(metadata && { metadata }),
      }
    }
    if ('status' in event)
      return {
        id: TASK,
        status: status(event.status, event.said),
        final: FINAL.has(event.status),
        ...(event.metadata && { metadata: event.metadata }),
      }
    if ('artifact' in event) return { id: TASK, artifact: artifact(event.artifact, event.append) }
    // There are no messages without a task.
    return { id: TASK, sessionId: CONTEXT, status: status('completed', event.message), artifacts: [] }
  },
  wrap: rpcWrap,
  failure: rpcFailure,
}
