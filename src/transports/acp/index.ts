import type { KnownCall, Socket, Transport } from '../../core/ports/transport.ts'
import { errorText, readMessage, RPC, RpcError } from '../../wire/json-rpc.ts'
import { AcpConnection } from './connection.ts'
import { refusal } from './errors.ts'
import { HttpBinding, type HttpOptions } from './http.ts'
import type { ConnectTools } from './tools.ts'

export { AcpConnection, type ConnectionOptions, type Link } from './connection.ts'
export type { ConnectTools, GivenContext, GivenTool, McpContext, McpTools } from './tools.ts'

export interface AcpOptions {
  /** How MCP servers that clients bring are reached. Without it there are none. */
  readonly connectTools?: ConnectTools
  /** What is told as the agent's version. */
  readonly version?: string
}

/** ACP 1 over HTTP and WebSocket at `/acp`, and the methods of UAMP transports beside it, also at `/acp/stream`. */
export function acp({ connectTools, version = '1.0' }: AcpOptions = {}): Transport {
  return {
    name: 'acp',
    routes: (host) => {
      const options: HttpOptions = { host, connectTools, version }
      const http = new HttpBinding(options)
      return [
        { method: 'POST', path: '/acp', access: 'request', handle: (request, call) => http.post(request, call) },
        { method: 'GET', path: '/acp', access: 'request', handle: (request, call) => http.stream(request, call) },
        { method: 'DELETE', path: '/acp', access: 'request', handle: (request, call) => http.remove(request, call) },
        ...['/acp', '/acp/stream'].map(
          (path) =>
            ({
              method: 'WS',
              path,
              access: 'request',
              handle: (socket: Socket, call: KnownCall) => overSocket(options, socket, call),
            }) as const,
        ),
      ]
    },
    refusal,
  }
}

async function overSocket(options: HttpOptions, socket: Socket, { agent, root, principal, access }: KnownCall): Promise<void> {
  const link = { send: (frames: readonly string[]) => socket.send(frames), listens: () => true }
  const connection = new AcpConnection({ ...options, link, local: false, caller: { agent, root, principal, access } })
  try {
    for await (const frame of socket) {
      if (typeof frame === 'string') connection.receive(readMessage(frame))
      else await socket.send([errorText(null, new RpcError(RPC.invalidRequest, 'Messages are JSON in text frames, not binary frames'))])
    }
  } finally {
    await connection.close()
  }
}
