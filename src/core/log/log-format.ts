import type { ContentItem } from '../../protocol/content.ts'
import type { Draft, ServerEvent } from '../../protocol/events.ts'
import { Entry, Slice, Stamp, type Item } from './entry.ts'
import type { Group } from '../ports/store.ts'

/** Above this size the end of a response is stored without its output, which the response's record holds anyway. */
const LARGE_END = 64 * 1024

/** A session's log in the store. */
export interface StoredLog {
  readonly sessionId: string
  /** The output in a response's record. */
  outputOf(responseId: string): Promise<readonly ContentItem[]>
}

/**
 * Encodes a slice of the log as lines. `>` with a response id begins the events of that response; `>` alone, those outside one. Every
 * other line is the JSON of an event without its stamp, or an array with the texts of consecutive text deltas.
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
      // Version 0.1 wrote the response id into each line.
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

/** Replaces the output in the end of a response. Returns other events unchanged. */
function withOutput(draft: Draft, output: readonly ContentItem[]): Draft {
  if (draft.type === 'response.done') return { ...draft, response: { ...draft.response, output: [...output] } }
  return draft.type === 'response.cancelled' ? { ...draft, partial_output: [...output] } : draft
}
