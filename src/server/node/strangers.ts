import type { Duplex } from 'node:stream'
import type { Principal } from '../../core/ports/access.ts'

/**
 * Connections that have not shown valid credentials, the oldest first. When the server has as many connections as it may, one of
 * these goes for each that comes: silent ones, slow ones and sockets that wait for a token must not keep out those who have one.
 */
export class Strangers {
  /** With what a WebSocket does to say why. */
  readonly #leaving = new Map<Duplex, (() => void) | undefined>()
  readonly #owners = new WeakMap<Duplex, Principal>()

  add(socket: Duplex): void {
    this.#leaving.set(socket, undefined)
  }

  onEvict(socket: Duplex, leave: () => void): void {
    // Keeps its place among the others.
    if (this.#leaving.has(socket)) this.#leaving.set(socket, leave)
  }

  /** It is no stranger's any more. */
  know(socket: Duplex, principal: Principal): void {
    this.#leaving.delete(socket)
    this.#owners.set(socket, principal)
  }

  /** Who has shown credentials on it last. */
  ownerOf(socket: Duplex): Principal | undefined {
    return this.#owners.get(socket)
  }

  has(socket: Duplex): boolean {
    return this.#leaving.has(socket)
  }

  delete(socket: Duplex): void {
    this.#leaving.delete(socket)
  }

  /** False: all are known. */
  evict(): boolean {
    const [oldest] = this.#leaving
    if (!oldest) return false
    const [socket, leave] = oldest
    this.#leaving.delete(socket)
    leave?.()
    // Ends it after what was written, and does not wait for the other side.
    if ('destroySoon' in socket && typeof socket.destroySoon === 'function') socket.destroySoon()
    else socket.destroy()
    return true
  }
}
