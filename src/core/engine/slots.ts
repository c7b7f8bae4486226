import { UampError } from '../../protocol/errors.ts'
import { textLength } from '../basics/weight.ts'

/** Where protocols let a client put what they have no field for. AG-UI's `state` is none: it counts only against the budget. */
const SLOTS: ReadonlySet<string> = new Set(['extensions', 'metadata', 'context', 'forwardedProps', '_meta', 'offer', 'answer'])

/** Levels that are looked through: an A2A part is in a list, in a message, in the parameters. */
const LEVELS = 6

/** Throws `too_large` when a slot in what a client sent holds more than `limit` bytes of JSON. */
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
