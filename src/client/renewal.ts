import type { ServerEvent } from '../protocol/events.ts'
import { backoff } from '../wire/backoff.ts'
import type { Reconnect } from './reconnect.ts'
import type { Tokens } from './tokens.ts'

/** Timers are not longer than this: a machine may sleep meanwhile, and browsers have a bound. */
const LOOK_MS = 60_000
/** How long the answer to a token is waited for. */
const ANSWER_MS = 5_000

export interface RenewalOptions {
  readonly tokens: Tokens
  readonly reconnect: Reconnect
  /** The token that the connection was opened with. */
  readonly shown: string | undefined
  /** Shows the server a newer token. Gives the id of the event. */
  readonly show: (token: string) => string
}

/** Keeps one connection supplied with tokens. If there is none to be had, it tries again, ever less often, until the server cuts. */
export class Renewal {
  readonly #options: RenewalOptions
  readonly #delay: (failures: number) => number
  #shown: string | undefined
  /** The server has not answered the newest token yet. What it says meanwhile is about the one before. */
  #unanswered: { readonly id: string; readonly at: number } | undefined
  #timer: ReturnType<typeof setTimeout> | undefined
  #failures = 0
  #stopped = false
  #asking = false
  /** What waits for the next token. */
  #then: (() => void)[] = []

  constructor(options: RenewalOptions) {
    this.#options = options
    this.#shown = options.shown
    this.#delay = backoff(options.reconnect)
  }

  /** Waits until the token should be replaced. */
  begin(): void {
    const { tokens } = this.#options
    const { dueMs } = tokens
    if (tokens.renews && dueMs !== undefined) this.#after(dueMs, () => ((tokens.dueMs ?? 0) > 0 ? this.begin() : void this.#renew()))
  }

  /** The server says that the token has expired. `then` runs when it has been shown another. */
  expired(then: () => void): void {
    if (this.#unanswered && performance.now() - this.#unanswered.at < ANSWER_MS) return then()
    this.#then.push(then)
    if (this.#asking || this.#failures > 0) return
    this.#options.tokens.spent(this.#shown)
    void this.#renew()
  }

  /** True if the event is only about the token. */
  hears(event: ServerEvent): boolean {
    if (!this.#unanswered) return false
    const isRefused = event.type === 'session.error' && event.error.details?.['event_id'] === this.#unanswered.id
    if (isRefused || event.type === 'session.updated') this.#unanswered = undefined
    if (isRefused) this.#retry()
    return isRefused
  }

  stop(): void {
    this.#stopped = true
    clearTimeout(this.#timer)
  }

  async #renew(): Promise<void> {
    if (this.#asking) return
    this.#asking = true
    const token = await this.#options.tokens.get().catch(() => undefined)
    this.#asking = false
    if (this.#stopped) return
    // Nobody is told: when the server cuts the connection, whoever connects again gets the reason.
    if (token === undefined || token === this.#shown) return this.#retry()
    this.#shown = token
    this.#unanswered = { id: this.#options.show(token), at: performance.now() }
    this.#failures = 0
    for (const then of this.#then.splice(0)) then()
    this.begin()
  }

  #retry(): void {
    this.#options.tokens.spent(this.#shown)
    this.#after(this.#delay(this.#failures++), () => void this.#renew())
  }

  #after(ms: number, then: () => void): void {
    clearTimeout(this.#timer)
    if (!this.#stopped) this.#timer = setTimeout(then, Math.min(Math.max(ms, 0), LOOK_MS))
  }
}
