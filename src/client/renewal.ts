import type { ServerEvent } from '../protocol/events.ts'
import { backoff } from '../wire/backoff.ts'
import type { Reconnect } from './reconnect.ts'
import type { Tokens } from './tokens.ts'

/** Timers are not longer than this: a machine may sleep meanwhile, and browsers have a bound. */
const LOOK_MS = 60_000
/** How long the answer to a token is waited for. */
const ANSWER_MS = 5_000
/** The least time between a token and the next one, if nothing is wrong with it. */
const LEAST_MS = 1_000
/** If the server calls one token after the other expired within this time, the next one is asked for ever later. */
const SHORT_MS = 5_000

export interface RenewalOptions {
  readonly tokens: Tokens
  readonly reconnect: Reconnect
  /** Shows the server a newer token. Gives the id of the event that does. */
  readonly show: (token: string) => string
}

/**
 * Keeps one connection supplied with tokens. If there is none to be had, it tries again, ever less often, until the server cuts: whoever
 * connects again then gets the reason.
 */
export class Renewal {
  readonly #options: RenewalOptions
  readonly #delay: (failures: number) => number
  #shown: string | undefined
  #shownAt = 0
  /** The event with the newest token. Until it is answered, what the server says is about the token before. */
  #sent: { readonly id: string; isAnswered: boolean } | undefined
  #timer: ReturnType<typeof setTimeout> | undefined
  #failures = 0
  /** Tokens in a row that expired soon after they were shown. */
  #short = 0
  #stopped = false
  #asking = false
  /** Another try is planned. */
  #retrying = false
  /** What waits for the next token. */
  #then: (() => void)[] = []

  constructor(options: RenewalOptions) {
    this.#options = options
    this.#delay = backoff(options.reconnect)
  }

  /** The connection is open, by this token. */
  begin(token: string | undefined): void {
    this.#shown = token
    this.#shownAt = performance.now()
    this.#sent = undefined
    this.#failures = 0
    this.#retrying = false
    this.#plan()
  }

  /** The server says that the token has expired. `then` runs when it has been shown another. */
  expired(then: () => void): void {
    if (this.#sent?.isAnswered === false && performance.now() - this.#shownAt < ANSWER_MS) return then()
    this.#then.push(then)
    this.#options.tokens.spent(this.#shown)
    if (this.#asking || this.#retrying) return
    this.#short = performance.now() - this.#shownAt < SHORT_MS ? this.#short + 1 : 0
    if (this.#short > 1) this.#retryAfter(this.#delay(this.#short))
    else void this.#renew()
  }

  /** True if the event is only about the token. */
  hears(event: ServerEvent): boolean {
    const sent = this.#sent
    if (!sent) return false
    if (event.type === 'session.updated') {
      sent.isAnswered = true
      this.#failures = 0
    }
    if (event.type !== 'session.error' || event.error.details?.['event_id'] !== sent.id) return false
    this.#sent = undefined
    this.#options.tokens.spent(this.#shown)
    this.#retry()
    return true
  }

  stop(): void {
    this.#stopped = true
    clearTimeout(this.#timer)
  }

  /** Waits until the token should be replaced. */
  #plan(leastMs = 0): void {
    const { tokens } = this.#options
    const dueMs = tokens.renews ? tokens.dueMs(this.#shown) : undefined
    if (dueMs !== undefined) this.#after(Math.max(dueMs, leastMs), () => this.#look())
  }

  #look(): void {
    const dueMs = this.#options.tokens.dueMs(this.#shown)
    if (dueMs !== undefined && dueMs <= 0) void this.#renew()
    else this.#plan()
  }

  async #renew(): Promise<void> {
    this.#retrying = false
    if (this.#asking) return
    this.#asking = true
    const token = await this.#options.tokens.renew(this.#shown).catch(() => undefined)
    this.#asking = false
    if (this.#stopped) return
    if (token === undefined || token === this.#shown) return this.#retry()
    this.#shown = token
    this.#shownAt = performance.now()
    this.#sent = { id: this.#options.show(token), isAnswered: false }
    for (const then of this.#then.splice(0)) then()
    this.#plan(LEAST_MS)
  }

  #retry(): void {
    this.#retryAfter(this.#delay(this.#failures++))
  }

  #retryAfter(ms: number): void {
    this.#retrying = true
    this.#after(ms, () => void this.#renew())
  }

  #after(ms: number, then: () => void): void {
    clearTimeout(this.#timer)
    if (!this.#stopped) this.#timer = setTimeout(then, Math.min(Math.max(ms, 0), LOOK_MS))
  }
}
