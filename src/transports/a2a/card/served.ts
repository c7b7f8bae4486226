import { namesTag } from '../../../wire/json-document.ts'

/** A card as it is sent: its text, and what caches need to know of it. */
export interface Served {
  readonly text: string
  readonly etag: string
  readonly lastModified: string
}

/** Cards that are remembered: one for each agent, generation and name of the server. Beyond it the oldest is made anew. */
const REMEMBERED = 256

/** Cards by what they say. A signature differs each time it is made, so a signed card is made once. */
export class ServedCards {
  readonly #now: () => number
  readonly #served = new Map<string, Promise<Served>>()

  constructor(now: () => number) {
    this.#now = now
  }

  /** `finish` makes what is sent of the card, once. */
  of(unsigned: object, finish: () => Promise<object>): Promise<Served> {
    const text = JSON.stringify(unsigned)
    const known = this.#served.get(text)
    if (known) return known
    const made = this.#make(text, finish)
    this.#served.set(text, made)
    made.catch(() => this.#served.delete(text))
    if (this.#served.size > REMEMBERED) this.#served.delete(this.#served.keys().next().value ?? '')
    return made
  }

  /** The tag is of the unsigned text, so it is the same in every process that serves this card. */
  async #make(text: string, finish: () => Promise<object>): Promise<Served> {
    const lastModified = new Date(this.#now()).toUTCString()
    const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text)))
    const tag = Array.from(digest.subarray(0, 16), (byte) => byte.toString(16).padStart(2, '0')).join('')
    return { text: JSON.stringify(await finish()), etag: `"${tag}"`, lastModified }
  }
}

/** RFC 9110 §13.1: `If-None-Match` decides; where it is missing, `If-Modified-Since`. */
export function isUnchanged(headers: Headers, { etag, lastModified }: Served): boolean {
  const tags = headers.get('if-none-match')
  if (tags !== null) return namesTag(tags, etag)
  const since = headers.get('if-modified-since')
  return since !== null && Date.parse(since) >= Date.parse(lastModified)
}
