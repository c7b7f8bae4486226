import { UampClientError } from './errors.ts'

/** A token, or a function that gets one. The function is called again before the token expires, and when the server wants another. */
export type TokenSource = string | (() => string | Promise<string>)

/** A token is replaced this long before it expires, or after three quarters of its life if that is shorter. */
const AHEAD_MS = 30_000

/** The token of a client, and where the next one comes from. */
export class Tokens {
  readonly #source: TokenSource | undefined
  readonly #patienceMs: number
  #token: string | undefined
  /** When it expires, and when to replace it, in milliseconds since 1970; undefined if only the server knows. */
  #expiresAt: number | undefined
  #dueAt: number | undefined
  #asking: Promise<string> | undefined
  /** Calls of the function, and the newest one of them that has given a token. */
  #calls = 0
  #answered = 0
  #giveUp: (reason: Error) => void = () => undefined

  /** `patienceMs`: how long the function may take, before it counts as failed and is called again. */
  constructor(source: TokenSource | undefined, patienceMs: number) {
    this.#source = source
    this.#patienceMs = patienceMs
    if (typeof source === 'string') this.#token = source
  }

  /** True if there may be another one. */
  get renews(): boolean {
    return typeof this.#source === 'function'
  }

  /** The time until this token should be replaced: none if there is a newer one. Undefined: when the server says so. */
  dueMs(token: string | undefined): number | undefined {
    if (token !== this.#token) return 0
    return this.#dueAt === undefined ? undefined : this.#dueAt - Date.now()
  }

  /** A token that has not expired. Rejects with `unreachable` if there is none, because the next try may bring one. */
  async get(): Promise<string | undefined> {
    return this.#isGood ? this.#token : this.#ask()
  }

  /** A newer token than this one. Rejects as `get` does. The function may give the same one again. */
  async renew(token: string | undefined): Promise<string | undefined> {
    return this.#isGood && this.#token !== token ? this.#token : this.#ask()
  }

  /** The server no longer takes this token. */
  spent(token: string | undefined): void {
    if (token === this.#token && this.renews) this.#token = undefined
  }

  /** Whoever waits for a token waits no longer. */
  close(): void {
    this.#giveUp(new Error('The client was closed'))
  }

  get #isGood(): boolean {
    if (!this.renews) return true
    return this.#token !== undefined && (this.#expiresAt === undefined || Date.now() < this.#expiresAt)
  }

  /** All who ask at the same time share one call. */
  #ask(): Promise<string> {
    return (this.#asking ??= this.#call().finally(() => (this.#asking = undefined)))
  }

  async #call(): Promise<string> {
    const call = ++this.#calls
    const late = new Promise<never>((_, reject) => (this.#giveUp = reject))
    const timer = setTimeout(() => this.#giveUp(new Error(`The function for it took longer than ${this.#patienceMs} ms`)), this.#patienceMs)
    try {
      // A token that comes too late for those who wait is there for those who ask next: perhaps somebody had to log in.
      return await Promise.race([this.#fromSource().then((token) => this.#take(token, call)), late])
    } catch (cause) {
      throw new UampClientError({ code: 'unreachable', message: 'There is no token' }, cause)
    } finally {
      clearTimeout(timer)
    }
  }

  async #fromSource(): Promise<string> {
    return typeof this.#source === 'function' ? this.#source() : (this.#source ?? '')
  }

  #take(token: string, call: number): string {
    // An earlier call, which took longer.
    if (call < this.#answered) return token
    this.#answered = call
    const expiresAt = expiryOf(token)
    const left = (expiresAt ?? 0) - Date.now()
    // If it has expired already by this clock, one of the clocks is wrong: the server has to say when.
    this.#expiresAt = left > 0 ? expiresAt : undefined
    this.#dueAt = this.#expiresAt === undefined ? undefined : this.#expiresAt - Math.min(AHEAD_MS, left / 4)
    return (this.#token = token)
  }
}

/** When a JWT expires, in milliseconds since 1970. Nobody relies on it but for asking early, so it is not verified. */
function expiryOf(token: string): number | undefined {
  try {
    const { exp } = JSON.parse(atob((token.split('.')[1] ?? '').replaceAll('-', '+').replaceAll('_', '/'))) as { exp?: unknown }
    return typeof exp === 'number' ? exp * 1000 : undefined
  } catch {
    return undefined
  }
}
