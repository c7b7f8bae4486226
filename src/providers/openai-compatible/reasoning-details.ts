import type { ContentItem } from '../../protocol/content.ts'
import { isRecord, parseJson } from '../../protocol/json.ts'

/** OpenRouter's form of thoughts: a list of text, summaries and what is encrypted or signed, to be sent back as it was. */
type Detail = Record<string, unknown>

/** Marks a signature as ours, so that none of another provider's is sent in its place. */
const MARK = 'reasoning_details:'
/** Entries of one answer; others are left out, and so is what they held. */
const ENTRIES = 1024
/** They come in pieces. */
const GROWING = ['text', 'summary', 'signature']

/** Gathers the pieces of one answer. */
export class ReasoningDetails {
  #entries: Detail[] = []

  /** Returns the text that can be read of them. */
  add(pieces: readonly unknown[]): string {
    let text = ''
    for (const piece of pieces) {
      if (!isRecord(piece)) continue
      merge(this.#entries, piece)
      for (const field of ['text', 'summary']) if (typeof piece[field] === 'string') text += piece[field]
    }
    return text
  }

  /** What has been gathered since the last time, as a signature. */
  take(): string | undefined {
    if (this.#entries.length === 0) return undefined
    const signature = MARK + JSON.stringify(this.#entries)
    this.#entries = []
    return signature
  }
}

/** What a message's thoughts keep of them. */
export function detailsIn(items: readonly ContentItem[]): readonly Detail[] | undefined {
  const entries: Detail[] = []
  for (const item of items) {
    if (item.type !== 'thinking' || !item.signature?.startsWith(MARK)) continue
    for (const piece of listIn(item.signature.slice(MARK.length))) merge(entries, piece)
  }
  return entries.length === 0 ? undefined : entries
}

/** A piece goes on the entry of its kind and index, or the last one, if it has none. What is encrypted comes whole. */
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

/** It went through a client's hands. */
function listIn(text: string): Detail[] {
  try {
    const value: unknown = parseJson(text)
    return Array.isArray(value) ? value.filter(isRecord) : []
  } catch {
    return []
  }
}
