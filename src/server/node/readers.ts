import type { ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Gateway, Hold } from '../../core/ports/session.ts'
import { UampError } from '../../protocol/errors.ts'
import { COUNTED_BYTES, NOBODY } from '../bodies.ts'
import { answerOn, type Pipelines } from './pipelined.ts'
import type { StreamWriter } from './streamed.ts'
import type { Strangers } from './strangers.ts'
import { Progress, Taking, type Sweeper, type Swept } from './sweeper.ts'

export interface ReadersOptions {
  readonly sweeper: Sweeper
  readonly stallMs: number
  readonly gateway: Pick<Gateway, 'hold'>
  readonly strangers: Pick<Strangers, 'ownerOf'>
  readonly pipelines: Pick<Pipelines, 'bytesBehind'>
}

/** The state of a connection between two checks. */
interface Seen {
  progress?: Progress | undefined
  hold?: Hold | undefined
  taking?: Taking | undefined
}

/**
 * Checks connections for unread bytes. These count as held memory, because many small unread answers are as much as a large one. A
 * client that reads nothing of an answer for too long is cut, as the reader of a stream is.
 */
export class Readers implements Swept {
  readonly #connections = new Map<Duplex, Seen>()
  readonly #streams = new WeakMap<ServerResponse, StreamWriter>()
  readonly #options: ReadersOptions

  constructor(options: ReadersOptions) {
    this.#options = options
  }

  add(socket: Duplex): void {
    this.#connections.set(socket, {})
    this.#options.sweeper.add(this)
  }

  delete(socket: Duplex): void {
    this.#connections.get(socket)?.hold?.close()
    this.#connections.delete(socket)
    if (this.#connections.size === 0) this.#options.sweeper.delete(this)
  }

  /** Leaves a stream to its writer, until the returned function is called. */
  leave(response: ServerResponse, writer: StreamWriter): () => void {
    this.#streams.set(response, writer)
    return () => this.#streams.delete(response)
  }

  sweep(now: number): void {
    for (const [socket, seen] of this.#connections) {
      this.#count(socket, seen)
      const answer = socket.writableLength > 0 ? answerOn(socket) : undefined
      if (!answer || this.#streams.has(answer)) {
        seen.progress = undefined
        continue
      }
      const progress = (seen.progress ??= new Progress())
      if (progress.stalledFor(socket, now) >= this.#options.stallMs) socket.destroy()
    }
  }

  /** Runs now and then, not at each write: a second can add little beside the bound. */
  #count(socket: Duplex, seen: Seen): void {
    const { gateway, strangers, pipelines } = this.#options
    const behind = pipelines.bytesBehind(socket)
    const bytes = socket.writableLength + behind
    if (bytes <= COUNTED_BYTES) {
      seen.hold?.close()
      seen.hold = undefined
      return
    }
    const hold = (seen.hold ??= gateway.hold(strangers.ownerOf(socket) ?? NOBODY, 0))
    // One answer may be large and come in one piece. A client that reads it gets all of it.
    if ((seen.taking ??= new Taking()).since(socket) && behind === 0) return hold.set(bytes)
    try {
      hold.grow(bytes)
    } catch (error) {
      hold.set(bytes)
      const answer = answerOn(socket)
      const writer = answer && this.#streams.get(answer)
      if (writer && behind === 0) writer.fail(UampError.from(error))
      else socket.destroy()
    }
  }
}
