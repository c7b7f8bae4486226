import type { ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { answerOn } from './pipelined.ts'
import { Progress, type Sweeper, type Swept } from './sweeper.ts'

/**
 * Connections whose answers come in one piece. Whoever takes nothing of one for too long is cut, as the reader of a stream is: else
 * it could leave unread whatever it asks for, and keep it in memory for ever.
 */
export class Readers implements Swept {
  readonly #connections = new Map<Duplex, Progress | undefined>()
  readonly #elsewhere = new WeakSet<ServerResponse>()
  readonly #sweeper: Sweeper
  readonly #stallMs: number

  constructor(sweeper: Sweeper, stallMs: number) {
    this.#sweeper = sweeper
    this.#stallMs = stallMs
  }

  add(socket: Duplex): void {
    this.#connections.set(socket, undefined)
    this.#sweeper.add(this)
  }

  delete(socket: Duplex): void {
    this.#connections.delete(socket)
    if (this.#connections.size === 0) this.#sweeper.delete(this)
  }

  /** A stream is looked after by its writer, until that says otherwise. */
  leave(response: ServerResponse): () => void {
    this.#elsewhere.add(response)
    return () => this.#elsewhere.delete(response)
  }

  sweep(now: number): void {
    for (const [socket, before] of this.#connections) {
      const answer = socket.writableLength > 0 ? answerOn(socket) : undefined
      if (!answer || this.#elsewhere.has(answer)) {
        if (before) this.#connections.set(socket, undefined)
        continue
      }
      const progress = before ?? new Progress()
      if (!before) this.#connections.set(socket, progress)
      if (progress.stalledFor(socket, now) >= this.#stallMs) socket.destroy()
    }
  }
}
