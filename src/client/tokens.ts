import { UampClientError } from './errors.ts'

/** A token, or a function that gets one. The function is called again before the token expires, and when the server wants another. */
export type TokenSource = string | (() => string | Promise<string>)

/** A token is replaced this long before it expires, or after three quarters of its life if that is shorter. */
const AHEAD_MS = 30_000

/** The token of a client, and where the next one comes from. */
export class Tokens {
  readonly #source: TokenSource | undefined
  #token: string | undefined
  /** When to replace it, in milliseconds since 1970; undefined if nobody knows. */
  #dueAt: number | undefined
  #asking: Promise<string> | undefined

  constructor(source: TokenSource | undefined) {
    this.#source = source
    if (typeof source === 'string') this.#token = source
  }

  /** True if there may be another one. */
  get renews(): boolean {
    return typeof this.#source === 'function'
  }

  /** The time until the token should be replaced. Undefined: when the server says so. */
  get dueMs(): number | undefined {
    return this.#dueAt === undefined ? undefined : this.#dueAt - Date.now()
  }

  /** A token that is good for a while. Rejects with `unreachable` if there is none, because the next try may bring one. */
  async get(): Promise<string | undefined> {
    if (typeof this.#source !== 'function') return this.#token
    const { dueMs } = this
    if (this.#token !== undefined && (dueMs === undefined || dueMs > 0)) return this.#token
    return (this.#asking ??= this.#ask(this.#source).finally(() => (this.#asking = undefined)))
  }

  /** The server no longer takes this token. */
  spent(token: string | undefined): void {
    if (token === this.#token && this.renews) this.#token = undefined
  }

  async #ask(source: () => string | Promise<string>): Promise<string> {
    let token: string
    try {
      token = await source()
    } catch (cause) {
      throw new UampClientError({ code: 'unreachable', message: 'There is no token' }, cause)
    }
    const expiresAt = expiryOf(token)
    const left = (expiresAt ?? 0) - Date.now()
    // By this clock it has expired already, so one of the clocks is wrong: the server has to say when.
    this.#dueAt = expiresAt === undefined || left <= 0 ? undefined : expiresAt - Math.min(AHEAD_MS, left / 4)
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
