import type { Verified } from './verifier.ts'

/** How many tokens are kept, and how much text. */
const MOST = { tokens: 10_000, chars: 8 * 1024 * 1024 }
/** How much of that stays when it is full. To forget one at a time is slow: a map looks for its first entry past all that were removed. */
const KEPT = 0.9
/** After this a token is verified again, so that it ends with a key that its issuer has withdrawn. */
const AGE_MS = 5 * 60_000

interface Entry {
  readonly verified: Verified
  /** When it is verified again. */
  readonly until: number
}

/** Tokens that have been verified, by their text: the signature is in it, so that no other token finds the entry. */
export class TokenCache {
  /** The least recently used first. */
  readonly #tokens = new Map<string, Entry>()
  readonly #monotonic: () => number
  #chars = 0

  constructor(monotonic: () => number) {
    this.#monotonic = monotonic
  }

  get(token: string): Verified | undefined {
    const entry = this.#tokens.get(token)
    if (entry === undefined) return undefined
    if (entry.until <= this.#monotonic()) {
      this.delete(token)
      return undefined
    }
    this.#tokens.delete(token)
    this.#tokens.set(token, entry)
    return entry.verified
  }

  add(token: string, verified: Verified): void {
    this.delete(token)
    this.#tokens.set(token, { verified, until: this.#monotonic() + AGE_MS })
    this.#chars += token.length
    if (this.#tokens.size > MOST.tokens || this.#chars > MOST.chars) this.#forgetOldest()
  }

  #forgetOldest(): void {
    for (const oldest of this.#tokens.keys()) {
      if (this.#tokens.size <= MOST.tokens * KEPT && this.#chars <= MOST.chars * KEPT) return
      this.delete(oldest)
    }
  }

  delete(token: string): void {
    if (this.#tokens.delete(token)) this.#chars -= token.length
  }

  get size(): number {
    return this.#tokens.size
  }
}
