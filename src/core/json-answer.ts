import type { Streamed } from './ports/transport.ts'
import { weigh } from './weight.ts'

/** Answers up to this weight are one text. Larger ones are written in pieces of about this size. */
const PIECE = 256 * 1024

/**
 * A JSON answer. A large one is made while its client takes it, piece by piece: as one text it would be a second copy of what an
 * agent said, and a third one in the connection's buffer.
 */
export function jsonAnswer(value: object | null, headers: Readonly<Record<string, string>>): Response | Streamed {
  const all = { 'content-type': 'application/json', ...headers }
  // Not `Response.json`: that makes `Headers` of them, which the server takes apart again.
  if (weigh(value, PIECE) <= PIECE) return new Response(JSON.stringify(value), { headers: all })
  return { status: 200, headers: all, frames: framesOf(value) }
}

async function* framesOf(value: object | null): AsyncGenerator<string, void> {
  yield* jsonPieces(value)
}

/** What `JSON.stringify` makes of plain data, in pieces. */
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
    // Half of a pair would be written as an escape.
    if (end < text.length && isHighSurrogate(text.charCodeAt(end - 1))) end++
    yield JSON.stringify(text.slice(at, end)).slice(1, -1)
    at = end
  }
  yield '"'
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff
}
