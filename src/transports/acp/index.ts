import type { KnownCall, Socket, Transport } from '../../core/ports/transport.ts'
import { errorText, readMessage, RPC, RpcError } from '../../wire/json-rpc.ts'
import { AcpConnection } from './connection.ts'
import { refusal } from './errors.ts'
import type { HttpOptions } from './http-connection.ts'
import { HttpBinding } from './http.ts'
import type { ConnectTools } from './tools.ts'

export { AcpConnection } from './connection.ts'
export type { ConnectTools } from './tools.ts'

export interface AcpOptions {
  /** How MCP servers that clients bring are reached. */
  readonly connectTools: ConnectTools
  /** The version of the agent that clients see. */
  readonly version: string
}

/** ACP 1 over HTTP and WebSocket at `/acp`, and the older methods of UAMP transports, also at `/acp/stream`. */
export function acp({ connectTools, version }: AcpOptions): Transport {
  return {
    name: 'acp',
    routes: (host) => {
      const options: HttpOptions = { host, connectTools, local: false, version }
      const http = new HttpBinding(options, host.closing)
      const overSocket = (socket: Socket, call: KnownCall): Promise<void> => serve(options, socket, call)
      // Each method asks for more.
      return [
        {
          method: 'POST',
          path: '/acp',
          access: 'request',
          action: 'read',
          body: 'text',
          handle: (request, call) => http.post(request, call),
        },
        { method: 'GET', path: '/acp', access: 'request', action: 'read', handle: (request, call) => http.stream(request, call) },
        { method: 'DELETE', path: '/acp', access: 'request', action: 'read', handle: (request, call) => http.remove(request, call) },
        { method: 'WS', path: '/acp', access: 'request', action: 'read', handle: overSocket },
        { method: 'WS', path: '/acp/stream', access: 'request', action: 'read', handle: overSocket },
      ]
    },
    refusal,
  }
}

async function serve(options: HttpOptions, socket: Socket, caller: KnownCall): Promise<void> {
  let sent = Promise.resolve()
  const send = (frames: readonly string[]): Promise<void> => (sent = socket.send(frames))
  const connection = new AcpConnection({ ...options, caller, send })
  try {
    for await (const frame of socket) {
      // A client that does not read what it is sent is not read from either.
      await sent
      const text = typeof frame === 'string' ? frame : textIn(frame)
      if (text !== undefined) void connection.receive(readMessage(text))
      else await send([errorText(null, new RpcError(RPC.invalidRequest, 'A binary frame must hold JSON as UTF-8'))])
    }
  } finally {
    await connection.close()
  }
}

/** Some WebSocket libraries send text in binary frames. `undefined`: it is no UTF-8. */
function textIn(frame: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(frame)
  } catch {
    return undefined
  }
}
