/** Requests that come on a connection before earlier ones are answered, as far as Node does not handle them. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Strangers } from './strangers.ts'

/** The most requests that may wait for an earlier answer on their connection. With more, it is cut. */
const PIPELINED = 64
/** The same for a connection without a valid token. */
const PIPELINED_BY_STRANGERS = 8

/** The answer that the connection is writing. Node's own handler of bad requests uses the same field. */
export function answerOn(socket: Duplex): ServerResponse | undefined {
  return (socket as { _httpMessage?: ServerResponse | null })._httpMessage ?? undefined
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
