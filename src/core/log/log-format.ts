import type { ContentItem } from '../../protocol/content.ts'
import type { Draft, ServerEvent } from '../../protocol/events.ts'
import { Entry, Stamp } from './entry.ts'
import type { Group } from '../ports/store.ts'
import { Slice, type Item } from './slice.ts'

/** The size from which the end of a response is stored without its output: the record of the response has it. */
const LARGE_END = 64 * 1024

/** A session's log in the store. */
export interface StoredLog {
  readonly sessionId: string
  /** What the record of a response says that it gave. */
  outputOf(responseId: string): Promise<readonly ContentItem[]>
}

/**
 * How a slice of the log is kept: one line of JSON an event, but a run of text deltas is one line `[response id, text, text …]`.
 * A delta is then a few bytes instead of two hundred, and its event is rebuilt letter for letter from the template.
 */
export function encodeSlice({ items, stamps }: Slice): string {
  const lines: string[] = []
  for (let index = 0; index < items.length;) {
    const item = items[index] as Item
    if (typeof item !== 'string') {
      lines.push(lineOf(item))
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
export async function decodeGroup({ sessionId, outputOf }: StoredLog, group: Group, after: number): Promise<Slice> {
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
      const { session_id: _, event_id: __, response_id, seq, output_of, ...draft } = JSON.parse(line) as StoredEvent
      const stamp = new Stamp(sessionId, response_id)
      const whole = output_of === undefined || seq <= after ? draft : withOutput(draft as Draft, await outputOf(output_of))
      items.push(new Entry(stamp, seq, whole as Draft))
      stamps.push(stamp)
    }
  }
  return new Slice(group.first, items, stamps).after(after)
}

type StoredEvent = ServerEvent & { response_id?: string; seq: number; output_of?: string }

function lineOf(entry: Entry): string {
  const { responseId } = entry.stamp
  if (responseId === undefined || entry.size <= LARGE_END) return entry.text
  const short = withOutput(entry.draft, [])
  return short === entry.draft ? entry.text : JSON.stringify({ ...new Entry(entry.stamp, entry.seq, short).event, output_of: responseId })
}

/** The end of a response with another output. Other events are returned as they are. */
function withOutput(draft: Draft, output: readonly ContentItem[]): Draft {
  if (draft.type === 'response.done') return { ...draft, response: { ...draft.response, output: [...output] } }
  return draft.type === 'response.cancelled' ? { ...draft, partial_output: [...output] } : draft
}
