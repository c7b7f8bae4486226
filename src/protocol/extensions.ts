import type { Capabilities } from './capabilities.ts'
import { isRecord, type Slot } from './json.ts'

/** Our own part of a slot where anybody may add something (`extensions`, `_meta`, `metadata`). */
export function uampIn(slot: Readonly<Slot> | null | undefined): Slot {
  const uamp = slot?.['uamp']
  return isRecord(uamp) ? uamp : {}
}

/** The extension events (`x.*`) that a client announces. */
export function understoodEvents(client: Capabilities | undefined): readonly string[] | 'all' {
  const { events } = uampIn(client?.extensions)
  return Array.isArray(events) ? events.filter((name) => typeof name === 'string') : events === true ? 'all' : []
}
