import { WebSocket } from 'ws'
import type { TlsFiles } from '../../src/server/node/tls.ts'

interface Dial {
  /** The certificate of servers that tests start. */
  tls: TlsFiles | undefined
  /** Opens a WebSocket at a URL that begins with http or https. */
  webSocket(url: string, headers: Readonly<Record<string, string>>): WebSocket
}

/** How tests reach their servers: suites that are run once more, over TLS and HTTP/2, change it. */
export const dial: Dial = { tls: undefined, webSocket: plainWebSocket }

export function plainWebSocket(url: string, headers: Readonly<Record<string, string>>): WebSocket {
  return new WebSocket(url.replace('http', 'ws'), { maxPayload: 0, perMessageDeflate: false, headers })
}
