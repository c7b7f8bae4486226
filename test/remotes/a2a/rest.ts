import type { IncomingMessage } from 'node:http'
import type { Fields, Op } from './wire.ts'

const OPS: Record<string, Op> = { 'message:send': 'send', 'message:stream': 'stream', cancel: 'cancel', subscribe: 'subscribe' }

export function restRead(base: string) {
  return (request: IncomingMessage, body: Fields) => {
    const path = new URL(request.url ?? '', 'http://peer').pathname
    if (!path.startsWith(base)) return undefined
    const rest = path.slice(base.length)
    const message = body['message'] ?? {}
    if (OPS[rest]) return { op: OPS[rest], message, taskId: message.taskId, contextId: message.contextId }
    const [, taskId, verb] = /^tasks\/([^:]+)(?::(\w+))?$/.exec(rest) ?? []
    const op = verb === undefined ? 'get' : OPS[verb]
    return taskId === undefined || op === undefined ? undefined : { op, message, taskId, contextId: undefined }
  }
}

export const REST_STATUS: Record<number, [status: number, rpc: string, reason: string]> = {
  [-32001]: [404, 'NOT_FOUND', 'TASK_NOT_FOUND'],
  [-32004]: [400, 'FAILED_PRECONDITION', 'UNSUPPORTED_OPERATION'],
  [-32602]: [400, 'INVALID_ARGUMENT', 'INVALID_PARAMS'],
}
