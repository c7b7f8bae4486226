import { WebSocket } from 'ws'
import { connect as connectWith, type Client, type ConnectOptions } from './client.ts'
import type { SocketConstructor } from './link-websocket.ts'

/** The most bytes of one message. The longest holds a whole answer as JSON, in which every character may be escaped. */
const MESSAGE = 384 * 1024 * 1024

/** A WebSocket for Node 20, which has none of its own. The type is ours, because `ws` and its types are not installed with the package. */
export const NodeWebSocket: SocketConstructor = class extends WebSocket {
  constructor(url: string, protocols: string[]) {
    super(url, protocols, { maxPayload: MESSAGE })
  }
}

export { UampClientError } from './errors.ts'
export { budget } from './wallet/budget.ts'
export { splitWallet } from './wallet/split.ts'
export { tokenWallet } from './wallet/token.ts'
export { x402Wallet } from './wallet/x402.ts'
export { verifyResponse } from './verify-response.ts'
export type * from './index.ts'

/** Makes a client. It connects when its first session is opened. */
export function connect(url: string | URL, options: ConnectOptions = {}): Client {
  return connectWith(url, { WebSocket: NodeWebSocket, ...options })
}
