import type { Principal } from '../ports/access.ts'
import type { Gateway, Hold } from '../ports/session.ts'
import type { Streamed } from '../ports/transport.ts'
import { weigh } from '../basics/weight.ts'

/** A body up to this weight is one text. Larger ones are written in pieces of about this size. */
const PIECE = 256 * 1024

export interface JsonAnswerOptions {
  readonly headers: Readonly<Record<string, string>>
  /** Counts a large body against the principal's bound until the client has it. */
  readonly gateway: Pick<Gateway, 'hold'>
  readonly principal: Principal
}

/**
 * A JSON response. A large one is made in pieces while its client reads: as one text it would be a second copy of what an agent
 * said, and a third one in the connection's buffer.
 */
export function jsonAnswer(value: object | null, { headers, gateway, principal }: JsonAnswerOptions): Response | Streamed {
  const all = { 'content-type': 'application/json', ...headers }
  // Not `Response.json`: that makes a `Headers` object, which the server takes apart again.
  if (weigh(value, PIECE) <= PIECE) return new Response(JSON.stringify(value), { headers: all })
  return { status: 200, headers: all, frames: new HeldPieces(jsonPieces(value), gateway.hold(principal, weigh(value))) }
}

/**
 * The pieces of a body. What they are made from counts as held until the client has it or leaves. Not a generator, because one that is
 * left before its first step does not run its `finally`.
 */
export class HeldPieces implements AsyncIterable<string, void> {
  readonly #pieces: Generator<string, void>
  readonly #hold: Hold

  constructor(pieces: Generator<string, void>, hold: Hold) {
    this.#pieces = pieces
    this.#hold = hold
  }

  [Symbol.asyncIterator](): AsyncIterator<string, void> {
    return {
      next: () => {
        const step = this.#pieces.next()
        if (step.done) this.#hold.close()
        return Promise.resolve(step)
      },
      return: () => {
        this.#hold.close()
        return Promise.resolve(this.#pieces.return())
      },
    }
  }
}

/** The text of `JSON.stringify` for plain data, in pieces. */
export function* jsonPieces(value: unknown): Generator<string, void> {
  let piece = ''
  for (const part of parts(value)) {
    piece += part
    if (piece.length < PIECE) continue
    yield piece
    piece = ''
  }
  if (piece !== '') yield piece
}

function* parts(value: unknown): Generator<string, void> {
  if (typeof value === 'string') return yield* textParts(value)
  if (typeof value !== 'object' || value === null || weigh(value, PIECE) <= PIECE) return yield JSON.stringify(value ?? null)
  let before = Array.isArray(value) ? '[' : '{'
  if (Array.isArray(value)) {
    for (const member of value as readonly unknown[]) {
      yield before
      yield* parts(member)
      before = ','
    }
    return yield before === '[' ? '[]' : ']'
  }
  for (const [key, member] of Object.entries(value)) {
    if (member === undefined) continue
    yield `${before}${JSON.stringify(key)}:`
    yield* parts(member)
    before = ','
  }
  yield before === '{' ? '{}' : '}'
}

function* textParts(text: string): Generator<string, void> {
  yield '"'
  for (let at = 0; at < text.length;) {
    let end = Math.min(at + PIECE, text.length)
    // `JSON.stringify` would write half of a surrogate pair as an escape.
    if (end < text.length && isHighSurrogate(text.charCodeAt(end - 1))) end++
    yield JSON.stringify(text.slice(at, end)).slice(1, -1)
    at = end
  }
  yield '"'
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff
}
