import type { ContentItem } from '../../protocol/content.ts'
import { isRecord, jsonIn, recordsIn } from '../../protocol/json.ts'

/** OpenRouter's thoughts: a list of texts, summaries, and encrypted or signed data, which goes back unchanged. */
type Detail = Record<string, unknown>

/** Marks our signatures, so that one of another provider is never sent instead. */
const MARK = 'reasoning_details:'
/** The most entries of one answer. More are dropped. */
const ENTRIES = 1024
/** Fields that come in pieces. */
const GROWING = ['text', 'summary', 'signature']

/** Gathers the pieces of one answer. */
export class ReasoningDetails {
  #entries: Detail[] = []

  /** Returns the readable text of the pieces. */
  add(pieces: readonly unknown[]): string {
    let text = ''
    for (const piece of pieces) {
      if (!isRecord(piece)) continue
      merge(this.#entries, piece)
      for (const field of ['text', 'summary']) if (typeof piece[field] === 'string') text += piece[field]
    }
    return text
  }

  /** The pieces since the last call, as a signature. */
  take(): string | undefined {
    if (this.#entries.length === 0) return undefined
    const signature = MARK + JSON.stringify(this.#entries)
    this.#entries = []
    return signature
  }
}

/** The details that a message's thoughts hold. */
export function detailsIn(items: readonly ContentItem[]): readonly Detail[] | undefined {
  const entries: Detail[] = []
  for (const item of items) {
    if (item.type !== 'thinking' || !item.signature?.startsWith(MARK)) continue
    for (const piece of recordsIn(jsonIn(item.signature.slice(MARK.length)))) merge(entries, piece)
  }
  return entries.length === 0 ? undefined : entries
}

/** A piece extends the entry of its kind and index, or the last entry if it has no index. Encrypted data comes whole. */
function merge(entries: Detail[], piece: Detail): void {
  const { type, index } = piece
  const candidates = type === 'reasoning.encrypted' ? [] : index == null ? entries.slice(-1) : entries
  const known = candidates.findLast((entry) => entry['type'] === type && (entry['index'] ?? null) === (index ?? null))
  if (!known) {
    if (entries.length < ENTRIES) entries.push({ ...piece })
    return
  }
  for (const [field, value] of Object.entries(piece)) {
    const before = known[field]
    known[field] = GROWING.includes(field) && typeof before === 'string' && typeof value === 'string' ? before + value : (value ?? before)
  }
}
