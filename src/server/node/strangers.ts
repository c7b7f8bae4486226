import type { Duplex } from 'node:stream'
import type { Principal } from '../../core/ports/access.ts'

/**
 * Connections without valid credentials, the oldest first. When the server is full, one of them is closed for each new connection, so
 * that silent and slow connections, and sockets that wait for a token, cannot keep out callers who have one.
 */
export class Strangers {
  /** By connection: how a WebSocket tells its peer why it is closed. */
  readonly #leaving = new Map<Duplex, (() => void) | undefined>()
  readonly #owners = new WeakMap<Duplex, Principal>()

  add(socket: Duplex): void {
    this.#leaving.set(socket, undefined)
  }

  onEvict(socket: Duplex, leave: () => void): void {
    // `set` keeps the position in the map.
    if (this.#leaving.has(socket)) this.#leaving.set(socket, leave)
  }

  /** The connection has shown valid credentials. */
  know(socket: Duplex, principal: Principal): void {
    this.#leaving.delete(socket)
    this.#owners.set(socket, principal)
  }

  /** The principal that showed credentials on it last. */
  ownerOf(socket: Duplex): Principal | undefined {
    return this.#owners.get(socket)
  }

  has(socket: Duplex): boolean {
    return this.#leaving.has(socket)
  }

  delete(socket: Duplex): void {
    this.#leaving.delete(socket)
  }

  /** Closes the oldest; false if there is none. */
  evict(): boolean {
    const [oldest] = this.#leaving
    if (!oldest) return false
    const [socket, leave] = oldest
    this.#leaving.delete(socket)
    leave?.()
    // Ends after pending writes, and does not wait for the other side.
    if ('destroySoon' in socket && typeof socket.destroySoon === 'function') socket.destroySoon()
    else socket.destroy()
    return true
  }
}
