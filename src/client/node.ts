import { WebSocket } from 'ws'
import { connect as connectWith, type Client, type ConnectOptions } from './client.ts'

/** The most bytes of one message. The longest holds a whole answer as JSON, in which every character may be escaped. */
const MESSAGE = 384 * 1024 * 1024

class LargeWebSocket extends WebSocket {
  constructor(url: string, protocols: string[]) {
    super(url, protocols, { maxPayload: MESSAGE })
  }
}

export { UampClientError } from './errors.ts'
export type * from './index.ts'

/** Makes a client. It connects when its first session is opened. */
export function connect(url: string | URL, options: ConnectOptions = {}): Client {
  // Node 20 has no WebSocket of its own.
  return connectWith(url, { WebSocket: LargeWebSocket, ...options })
}
