import type { HttpHeaders } from '../../core/ports/http.ts'
import type { Turn } from '../../core/ports/agent.ts'
import { callUpstream, shortBounds } from '../../upstream/upstream.ts'
import { UampError } from '../../protocol/errors.ts'
import { readCard, type Card } from './card.ts'
import { statusOf } from './errors.ts'
import { readJson } from '../../wire/upstream.ts'

const CARD_BYTES = 1024 * 1024
/** How long a card counts that does not say so itself, and at most. */
const FRESH_MS = 5 * 60_000
const FRESH_MAX_MS = 60 * 60_000
const CARD_MS = 15_000

export interface CardsOptions {
  readonly name: string
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly now: () => number
}

interface Kept {
  readonly card: Card
  readonly url: string
  readonly etag: string | null
  readonly until: number
}

/** The agent's card: fetched when it is first needed, and again when it has grown old. */
export class Cards {
  readonly #options: CardsOptions
  #kept: Kept | undefined
  #fetching: Promise<Kept> | undefined

  constructor(options: CardsOptions) {
    this.#options = options
  }

  async get(turn: Pick<Turn, 'http' | 'signal'>): Promise<Card> {
    if (this.#kept && this.#options.now() < this.#kept.until) return this.#kept.card
    return (await this.#fresh(turn)).card
  }

  /** Who wants it while it is fetched waits for the same answer, unless whoever asked for it has gone. */
  async #fresh(turn: Pick<Turn, 'http' | 'signal'>): Promise<Kept> {
    try {
      this.#fetching ??= this.#fetch(turn).finally(() => (this.#fetching = undefined))
      return (this.#kept = await this.#fetching)
    } catch (thrown) {
      turn.signal.throwIfAborted()
      if (UampError.from(thrown).code === 'cancelled') return this.#fresh(turn)
      // An old card is better than none.
      if (this.#kept) return this.#kept
      throw thrown
    }
  }

  async #fetch(turn: Pick<Turn, 'http' | 'signal'>): Promise<Kept> {
    const urls = cardUrls(this.#options.url)
    // Where it was the last time, first.
    const known = this.#kept?.url
    const order = known === undefined ? urls : [known, ...urls.filter((url) => url !== known)]
    let missing: unknown
    for (const url of order) {
      try {
        return await this.#from(url, turn)
      } catch (thrown) {
        if (statusOf(thrown) !== 404) throw thrown
        missing ??= thrown
      }
    }
    const { name, url } = this.#options
    throw new UampError('not_found', `${name} has no card at ${url}: neither ${urls.join(' nor ')}`, { cause: missing })
  }

  async #from(url: string, { http, signal }: Pick<Turn, 'http' | 'signal'>): Promise<Kept> {
    const { name, now, headers: given } = this.#options
    const before = this.#kept?.url === url ? this.#kept : undefined
    const headers = {
      accept: 'application/json',
      'a2a-version': '1.0',
      ...given,
      ...(before?.etag != null && { 'if-none-match': before.etag }),
    }
    const explain = (): undefined => undefined
    try {
      const request = { url, method: 'GET' as const, headers }
      const answer = await callUpstream({
        name: `The card of ${name}`,
        http,
        signal,
        explain,
        request,
        ...shortBounds(CARD_BYTES, CARD_MS),
      })
      const card = readCard(await readJson(`The card of ${name}`, answer.body, CARD_BYTES), { name, from: url })
      return { card, url, etag: answer.headers.get('etag'), until: now() + freshFor(answer.headers) }
    } catch (thrown) {
      if (!before || statusOf(thrown) !== 304) throw thrown
      return { ...before, until: now() + FRESH_MS }
    }
  }
}

/** An address that ends with `.json` is the card's own. 0.3 and later have it at `agent-card.json`, the others at `agent.json`. */
function cardUrls(url: string): readonly string[] {
  const { pathname } = new URL(url)
  if (pathname.endsWith('.json')) return [url]
  const base = url.replace(/[?#].*$/, '').replace(/\/+$/, '')
  return ['agent-card.json', 'agent.json'].map((file) => `${base}/.well-known/${file}`)
}

/** RFC 9111, as far as a card needs it. */
function freshFor(headers: HttpHeaders): number {
  const control = headers.get('cache-control') ?? ''
  if (/\b(no-store|no-cache)\b/.test(control)) return 0
  const seconds = /\bmax-age=(\d+)/.exec(control)?.[1]
  return seconds === undefined ? FRESH_MS : Math.min(FRESH_MAX_MS, Number(seconds) * 1000)
}
