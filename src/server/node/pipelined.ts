/** Requests that come on a connection before earlier ones are answered, and what Node leaves to us of them. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Strangers } from './strangers.ts'

/** Requests of one connection that wait for an earlier answer of it; with more it is cut. */
const PIPELINED = 64
/** The same before it has shown a valid token. */
const PIPELINED_BY_STRANGERS = 8

/** The answer whose turn it is. Node's own handler of bad requests looks at the same field. */
export function answerOn(socket: Duplex): ServerResponse | undefined {
  return (socket as { _httpMessage?: ServerResponse | null })._httpMessage ?? undefined
}

/** Whether something on this connection waits for its answer, or has it in part. */
export function isAnswering(socket: Duplex): boolean {
  return answerOn(socket) !== undefined
}

/** Whether an answer has begun and is not over: another one would be taken for a part of it. */
export function isInAnswer(socket: Duplex): boolean {
  return answerOn(socket)?.headersSent === true
}

/** Answers that wait for their turn. */
export class Pipelines {
  readonly #waiting = new WeakMap<Duplex, Set<ServerResponse>>()
  readonly #strangers: Pick<Strangers, 'has'>

  constructor(strangers: Pick<Strangers, 'has'>) {
    this.#strangers = strangers
  }

  /** Whether this one is to be answered. For an answer that has its connection there is nothing to do. */
  admit({ socket }: IncomingMessage, response: ServerResponse): boolean {
    if (response.socket !== null) return true
    const waiting = this.#waitingOn(socket)
    if (waiting.size >= (this.#strangers.has(socket) ? PIPELINED_BY_STRANGERS : PIPELINED)) socket.destroy()
    if (socket.destroyed) return false
    waiting.add(response)
    response.once('close', () => waiting.delete(response))
    return true
  }

  /** Bytes of answers that wait for their turn on a connection. */
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
    // Node tells the answer whose turn it is that the connection is gone, and no other: those would go on for ever.
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
