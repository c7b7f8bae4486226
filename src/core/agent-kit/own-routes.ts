import { UampError } from '../../protocol/errors.ts'
import { jsonIn } from '../../protocol/json.ts'
import type { HttpRoute, KnownCall, Socket, SocketRoute } from '../ports/transport.ts'

type Method = HttpRoute['method']

/** A WebSocket whose messages are JSON. Iteration ends when the peer closes. */
export interface JsonSocket extends AsyncIterable<unknown> {
  /** Resolves when more may be sent. */
  send(value: unknown): Promise<void>
  close(code?: number, reason?: string): void
}

/**
 * A route for a skill. The handler gets the JSON of the body, undefined if there is none. It is an async generator, whose texts are
 * streamed as server-sent events, or returns a response or any JSON value.
 */
export function http(
  path: string,
  { method = 'GET' }: { readonly method?: Method | Lowercase<Method> },
  handler: (body: unknown, call: KnownCall) => AsyncGenerator<string, void> | Promise<unknown>,
): HttpRoute {
  return {
    method: method.toUpperCase() as Method,
    path,
    access: 'request',
    body: 'text',
    async handle(_, call) {
      const answer = handler(bodyOf(await call.text()), call)
      if (Symbol.asyncIterator in answer) return answer
      const value = await answer
      return value instanceof Response ? value : value === undefined ? new Response(null, { status: 204 }) : Response.json(value)
    },
  }
}

/** A WebSocket route for a skill. The socket is closed when the handler returns. */
export function websocket(path: string, handler: (socket: JsonSocket, call: KnownCall) => Promise<void>): SocketRoute {
  return { method: 'WS', path, access: 'request', handle: (socket, call) => handler(jsonSocket(socket), call) }
}

function bodyOf(text: string): unknown {
  if (text === '') return undefined
  const value = jsonIn(text)
  if (value === undefined) throw new UampError('invalid_request', 'The body must be JSON')
  return value
}

/** The close code for a message that is not what it should be (RFC 6455, §7.4.1). */
const NOT_JSON = 1007

function jsonSocket(socket: Socket): JsonSocket {
  return {
    send: (value) => socket.send([JSON.stringify(value ?? null)]),
    close: (code, reason) => socket.close(code, reason),
    async *[Symbol.asyncIterator]() {
      for await (const frame of socket) {
        const value = typeof frame === 'string' ? jsonIn(frame) : undefined
        if (value === undefined) return socket.close(NOT_JSON, 'Messages must be JSON')
        yield value
      }
    },
  }
}
