import type { ContentItem } from '../../protocol/content.ts'
import type { Draft } from '../../protocol/events.ts'
import { uampIn } from '../../protocol/extensions.ts'
import type { Slot } from '../../protocol/json.ts'

/** What was streamed as speech. */
export interface Spoken {
  readonly sound: boolean
  readonly words: string
  /** How many items it is, the last of what was said. Those that the end gives are better: they are whole. */
  readonly items: number
}

interface Rest {
  /** Nobody has heard it. */
  readonly unsaid: readonly ContentItem[]
  /** It was heard, as speech. */
  readonly spoken: readonly ContentItem[]
}

/**
 * What an agent gives with its end beyond what it has said. Many repeat all of it there; some say all or a part of it only there.
 * Texts go on where they were; of other things the first ones are those that were said.
 */
export function restOf(given: readonly ContentItem[], all: readonly ContentItem[], { sound, words, items }: Spoken): Rest {
  const said = all.slice(0, all.length - items)
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
    // A call that has its result was put before, in whatever response of the run.
    if (item.type === 'tool_call') return known.has(idOf(item)) || known.has(resultOf(item.tool_call.id)) ? [] : [item]
    if (item.type === 'tool_result') return known.has(idOf(item)) ? [] : [item]
    const left = counts.get(item.type) ?? 0
    counts.set(item.type, left - 1)
    return left > 0 ? [] : [item]
  })
  return { unsaid: rest.filter((item) => !isSpoken(item)), spoken: rest.filter(isSpoken) }
}

/** Ends whose words are no answer, but say why there is none yet. */
const REASONS: ReadonlySet<unknown> = new Set(['input_required', 'auth_required', 'rejected'])

export function isReason(extensions: Readonly<Slot> | undefined): boolean {
  return REASONS.has(uampIn(extensions)['stop_reason'])
}

/** As an agent would have said it. */
export function toDraft(item: ContentItem): Draft {
  if (item.type !== 'thinking') return { type: 'response.delta', delta: item }
  const { type, thinking: content, ...rest } = item
  return { type, content, is_delta: false, ...rest }
}

/** Pieces of one kind of text, as far as they have not been said. None of them, where something else was said. */
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
