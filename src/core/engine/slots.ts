import { UampError } from '../../protocol/errors.ts'
import { textLength } from '../basics/weight.ts'

/** Fields in which clients may put anything. AG-UI's `state` is not among them: only the memory budget bounds it. */
const SLOTS: ReadonlySet<string> = new Set(['extensions', 'metadata', 'context', 'forwardedProps', '_meta', 'offer', 'answer'])

/** How many levels deep to search: an A2A part is in a list, in a message, in the parameters. */
const LEVELS = 6

/** Throws `too_large` when a slot in a client's message holds more than `limit` bytes of JSON. */
export function checkSlots(value: unknown, limit: number, levels = LEVELS): void {
  if (typeof value !== 'object' || value === null || levels === 0) return
  for (const key in value) {
    const member = (value as Record<string, unknown>)[key]
    if (typeof member !== 'object' || member === null) continue
    if (!SLOTS.has(key)) checkSlots(member, limit, levels - 1)
    else if (textLength(member, limit) > limit) {
      throw new UampError('too_large', `"${key}" holds more than ${limit} bytes`, { details: { field: key, limit } })
    }
  }
}
