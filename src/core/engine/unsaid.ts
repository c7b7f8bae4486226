import type { ContentItem } from '../../protocol/content.ts'
import type { Draft } from '../../protocol/events.ts'
import { uampIn, type Slot } from '../../protocol/json.ts'

/** The part of the output that was streamed as speech. */
export interface Spoken {
  readonly sound: boolean
  readonly words: string
}

interface Rest {
  /** Not streamed yet. */
  readonly unsaid: readonly ContentItem[]
  /** Streamed as speech already. */
  readonly spoken: readonly ContentItem[]
}

/**
 * The output of `response.done` that was not streamed before. Many agents repeat all of it there; some give all or a part of it only
 * there. `said` has no speech: the end's own items replace that, because they are complete. A text continues the streamed text; of other types, the first items are taken to be the streamed ones.
 */
export function restOf(given: readonly ContentItem[], said: readonly ContentItem[], { sound, words }: Spoken): Rest {
  const text = new Continued(given, said, 'text')
  const thoughts = new Continued(given, said, 'thinking')
  const known = new Set(said.map(idOf))
  const counts = new Map<string, number>()
  for (const { type } of said) counts.set(type, (counts.get(type) ?? 0) + 1)
  const isSpoken = ({ type }: ContentItem): boolean =>
    (type === 'audio' && sound) || (type === 'text' && words !== '' && text.all === words)
  const rest = given.flatMap((item): ContentItem[] => {
    if (item.type === 'text') return text.rest(item.text).map((left) => ({ ...item, text: left }))
    if (item.type === 'thinking') return thoughts.rest(item.thinking).map((left) => ({ ...item, thinking: left }))
    // A call whose result is known was made before, perhaps in an earlier response of the turn.
    if (item.type === 'tool_call') return known.has(idOf(item)) || known.has(resultOf(item.tool_call.id)) ? [] : [item]
    if (item.type === 'tool_result') return known.has(idOf(item)) ? [] : [item]
    const left = counts.get(item.type) ?? 0
    counts.set(item.type, left - 1)
    return left > 0 ? [] : [item]
  })
  return { unsaid: rest.filter((item) => !isSpoken(item)), spoken: rest.filter(isSpoken) }
}

/** Stop reasons of ends whose text is no answer, but explains why there is none yet. */
const REASONS: ReadonlySet<unknown> = new Set(['input_required', 'auth_required', 'rejected'])

export function isReason(extensions: Readonly<Slot> | undefined): boolean {
  return REASONS.has(uampIn(extensions)['stop_reason'])
}

/** The draft that an agent would have yielded for this item. */
export function toDraft(item: ContentItem): Draft {
  if (item.type !== 'thinking') return { type: 'response.delta', delta: item }
  const { type, thinking: content, ...rest } = item
  return { type, content, is_delta: false, ...rest }
}

/** Cuts off what was streamed from the pieces of one kind of text. If something else was streamed, nothing is left. */
class Continued {
  readonly all: string
  #known: number

  constructor(given: readonly ContentItem[], said: readonly ContentItem[], type: 'text' | 'thinking') {
    const before = joined(said, type)
    this.all = joined(given, type)
    this.#known = this.all.startsWith(before) ? before.length : Infinity
  }

  rest(piece: string): string[] {
    const left = piece.slice(Math.min(this.#known, piece.length))
    this.#known = Math.max(0, this.#known - piece.length)
    return left === '' ? [] : [left]
  }
}

function joined(items: readonly ContentItem[], type: 'text' | 'thinking'): string {
  return items.map((item) => (item.type !== type ? '' : item.type === 'text' ? item.text : item.thinking)).join('')
}

function idOf(item: ContentItem): string | undefined {
  if (item.type === 'tool_call') return `call ${item.tool_call.id}`
  return item.type === 'tool_result' ? resultOf(item.tool_result.call_id) : undefined
}

function resultOf(call: string): string {
  return `result ${call}`
}
