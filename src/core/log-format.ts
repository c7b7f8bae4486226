import type { Draft, ServerEvent } from '../protocol/events.ts'
import { Entry, Stamp } from './entry.ts'
import type { Group } from './ports/store.ts'
import { Slice, type Item } from './slice.ts'

/**
 * How a slice of the log is kept: one line of JSON an event, but a run of text deltas is one line `[response id, text, text …]`.
 * A delta is then a few bytes instead of two hundred, and its event is rebuilt letter for letter from the template.
 */
export function encodeSlice({ items, stamps }: Slice): string {
  const lines: string[] = []
  for (let index = 0; index < items.length;) {
    const item = items[index] as Item
    if (typeof item !== 'string') {
      lines.push(item.text)
      index++
      continue
    }
    const stamp = stamps[index]
    const from = index
    while (index < items.length && typeof items[index] === 'string' && stamps[index] === stamp) index++
    lines.push(JSON.stringify([stamp?.responseId, ...items.slice(from, index)]))
  }
  return lines.join('\n')
}

/** The events of a stored group after `after`. */
export function decodeGroup(sessionId: string, group: Group, after: number): Slice {
  const items: Item[] = []
  const stamps: Stamp[] = []
  for (const line of group.text.split('\n')) {
    if (line.startsWith('[')) {
      const [responseId, ...texts] = JSON.parse(line) as [string, ...string[]]
      const stamp = new Stamp(sessionId, responseId)
      for (const text of texts) {
        items.push(text)
        stamps.push(stamp)
      }
    } else {
      const {
        session_id: _,
        event_id: __,
        response_id,
        seq,
        ...draft
      } = JSON.parse(line) as ServerEvent & { response_id?: string; seq: number }
      const stamp = new Stamp(sessionId, response_id)
      items.push(new Entry(stamp, seq, draft as Draft))
      stamps.push(stamp)
    }
  }
  return new Slice(group.first, items, stamps).after(after)
}
