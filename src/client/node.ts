import { WebSocket } from 'ws'
import { connect as connectWith, type Client, type ConnectOptions } from './client.ts'

export { UampClientError } from './errors.ts'
export type * from './index.ts'

/** Makes a client. It connects when its first session is opened. */
export function connect(url: string | URL, options: ConnectOptions = {}): Client {
  // Node 20 has no WebSocket of its own.
  return connectWith(url, { WebSocket, ...options })
}
