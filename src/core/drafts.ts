import type { Draft } from '../protocol/events.ts'

/** A piece of the answer's text: `yield text('Hello')`. */
export function text(piece: string): Draft {
  return { type: 'response.delta', delta: { type: 'text', text: piece } }
}
