/** What the server knows of its connections: who has not shown credentials, what waits behind an answer, who does not read. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Principal } from '../../core/ports/access.ts'
import type { Gateway, Hold } from '../../core/ports/session.ts'
import { UampError } from '../../protocol/errors.ts'
import { COUNTED_BYTES, NOBODY } from '../bodies.ts'
import type { Answer, StreamWriter } from './answers.ts'
import { Line } from './http2/line.ts'
import { Progress, Taking, type Sweeper, type Swept } from './sweeper.ts'

/**
 * Connections without valid credentials, the oldest first. When the server is full, one of them is closed for each new connection, so
 * that silent and slow connections, and sockets that wait for a token, cannot keep out callers who have one.
 */
export class Strangers {
  /** By connection: how a WebSocket tells its peer why it is closed. */
  readonly #leaving = new Map<Duplex, (() => void) | undefined>()
  readonly #owners = new WeakMap<Duplex, Principal>()
  readonly #welcomes = new WeakMap<Duplex, () => void>()

  add(socket: Duplex): void {
    this.#leaving.set(socket, undefined)
  }

  onEvict(socket: Duplex, leave: () => void): void {
    // `set` keeps the position in the map.
    if (this.#leaving.has(socket)) this.#leaving.set(socket, leave)
  }

  /** Called when the connection is a stranger's no longer. */
  onKnown(socket: Duplex, welcome: () => void): void {
    this.#welcomes.set(socket, welcome)
  }

  /** The connection has shown valid credentials. */
  know(socket: Duplex, principal: Principal): void {
    if (this.#leaving.delete(socket)) this.#welcomes.get(socket)?.()
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

/** The most requests that may wait for an earlier answer on their connection. With more, it is cut. */
const PIPELINED = 64
/** The same for a connection without a valid token. */
export const PIPELINED_BY_STRANGERS = 8

/** The answer that the connection is writing. Node's own handler of bad requests uses the same field. */
function answerOn(socket: Duplex): ServerResponse | undefined {
  return (socket as { _httpMessage?: ServerResponse | null })._httpMessage ?? undefined
}

/** The same for a stream of HTTP/2. */
function answerIn(socket: Duplex): object | undefined {
  return socket instanceof Line ? socket.answer : answerOn(socket)
}

/** The connection that a stream of HTTP/2 is on; any other is its own. */
function connectionOf(socket: Duplex): Duplex {
  return socket instanceof Line ? socket.carrier.socket : socket
}

/** True if a request on this connection waits for its answer, or for the rest of it. */
export function isAnswering(socket: Duplex): boolean {
  return answerOn(socket) !== undefined
}

/** True if an answer has begun and is not over. The client would take another one for a part of it. */
export function isInAnswer(socket: Duplex): boolean {
  return answerOn(socket)?.headersSent === true
}

/** Counts answers that wait for their turn. */
export class Pipelines {
  readonly #waiting = new WeakMap<Duplex, Set<ServerResponse>>()
  readonly #strangers: Pick<Strangers, 'has'>

  constructor(strangers: Pick<Strangers, 'has'>) {
    this.#strangers = strangers
  }

  /** False if too many requests wait on the connection. An answer that already has the connection is not counted. */
  admit({ socket }: IncomingMessage, response: ServerResponse): boolean {
    if (response.socket !== null) return true
    const waiting = this.#waitingOn(socket)
    if (waiting.size >= (this.#strangers.has(socket) ? PIPELINED_BY_STRANGERS : PIPELINED)) socket.destroy()
    if (socket.destroyed) return false
    waiting.add(response)
    response.once('close', () => waiting.delete(response))
    return true
  }

  /** Bytes of the answers that wait for their turn on a connection. */
  bytesBehind(socket: Duplex): number {
    let bytes = 0
    for (const response of this.#waiting.get(socket) ?? []) if (response.socket === null) bytes += response.writableLength
    return bytes
  }

  #waitingOn(socket: Duplex): Set<ServerResponse> {
    const known = this.#waiting.get(socket)
    if (known) return known
    const waiting = new Set<ServerResponse>()
    this.#waiting.set(socket, waiting)
    // When the connection is gone, Node tells only the answer that is being written. The others would go on for ever.
    socket.once('close', () => {
      for (const response of waiting) {
        if (response.socket !== null) continue
        response.destroyed = true
        response.emit('close')
      }
    })
    return waiting
  }
}

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
 * Checks connections, and streams of HTTP/2, for unread bytes. These count as held memory, because many small unread answers are as much as a large one. A
 * client that reads nothing of an answer for too long is cut, as the reader of a stream is.
 */
export class Readers implements Swept {
  readonly #connections = new Map<Duplex, Seen>()
  readonly #streams = new WeakMap<object, StreamWriter>()
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
  leave(response: Answer, writer: StreamWriter): () => void {
    this.#streams.set(response, writer)
    return () => this.#streams.delete(response)
  }

  sweep(now: number): void {
    for (const [socket, seen] of this.#connections) {
      this.#count(socket, seen)
      const answer = socket.writableLength > 0 ? answerIn(socket) : undefined
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
    const behind = socket instanceof Line ? socket.bytesBeside : pipelines.bytesBehind(socket)
    if (behind === undefined) return
    const bytes = socket.writableLength + behind
    if (bytes <= COUNTED_BYTES) {
      seen.hold?.close()
      seen.hold = undefined
      return
    }
    const hold = (seen.hold ??= gateway.hold(strangers.ownerOf(connectionOf(socket)) ?? NOBODY, 0))
    // One answer may be large and come in one piece. A client that reads it gets all of it.
    if ((seen.taking ??= new Taking()).since(socket) && behind === 0) return hold.set(bytes)
    try {
      hold.grow(bytes)
    } catch (error) {
      hold.set(bytes)
      const answer = answerIn(socket)
      const writer = answer && this.#streams.get(answer)
      if (writer && behind === 0) writer.fail(UampError.from(error))
      else socket.destroy()
    }
  }
}
