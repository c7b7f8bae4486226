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
 * How a slice of the log is kept. A line `>response id` says whose the lines below it are (`>` alone: the session's). Each is the JSON
 * of an event without its stamp, which is rebuilt letter for letter, or an array of texts: a run of text deltas.
 */
export function encodeSlice({ items, stamps }: Slice): string {
  const lines: string[] = []
  let stamp: Stamp | undefined
  for (let index = 0; index < items.length;) {
    if (stamps[index] !== stamp) lines.push(`>${(stamp = stamps[index] as Stamp).responseId ?? ''}`)
    const item = items[index] as Item
    if (typeof item !== 'string') {
      lines.push(lineOf(item))
      index++
      continue
    }
    const from = index
    while (index < items.length && typeof items[index] === 'string' && stamps[index] === stamp) index++
    lines.push(JSON.stringify(items.slice(from, index)))
  }
  return lines.join('\n')
}

/** The events of a stored group after `after`. */
export async function decodeGroup({ sessionId, outputOf }: StoredLog, group: Group, after: number): Promise<Slice> {
  const items: Item[] = []
  const stamps: Stamp[] = []
  let stamp: Stamp | undefined
  for (const line of group.text.split('\n')) {
    if (line.startsWith('>')) {
      stamp = new Stamp(sessionId, line.slice(1) || undefined)
    } else if (line.startsWith('[')) {
      const texts = JSON.parse(line) as string[]
      // Version 0.1 wrote the response with each line.
      const said = stamp ?? new Stamp(sessionId, texts.shift())
      for (const text of texts) {
        items.push(text)
        stamps.push(said)
      }
    } else {
      const seq = group.first + items.length
      const { session_id: _, event_id: __, seq: ___, response_id, output_of, ...draft } = JSON.parse(line) as StoredEvent
      const told = stamp ?? new Stamp(sessionId, response_id)
      const whole = output_of === undefined || seq <= after ? draft : withOutput(draft as Draft, await outputOf(output_of))
      items.push(new Entry(told, seq, whole as Draft))
      stamps.push(told)
    }
  }
  return new Slice(group.first, items, stamps).after(after)
}

type StoredEvent = ServerEvent & { response_id?: string; output_of?: string }

function lineOf(entry: Entry): string {
  const { responseId } = entry.stamp
  if (responseId === undefined || entry.size <= LARGE_END) return entry.body
  const short = withOutput(entry.draft, [])
  return short === entry.draft ? entry.body : JSON.stringify({ ...short, output_of: responseId })
}

/** The end of a response with another output. Other events are returned as they are. */
function withOutput(draft: Draft, output: readonly ContentItem[]): Draft {
  if (draft.type === 'response.done') return { ...draft, response: { ...draft.response, output: [...output] } }
  return draft.type === 'response.cancelled' ? { ...draft, partial_output: [...output] } : draft
}
