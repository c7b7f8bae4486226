import type { Verified } from './verifier.ts'

/** How many tokens are kept, and how much text. */
const MOST = { tokens: 10_000, chars: 8 * 1024 * 1024 }
/** How much of that stays when it is full. To forget one at a time is slow: a map looks for its first entry past all that were removed. */
const KEPT = 0.9

/** Tokens that have been verified, by their text: the signature is in it, so that no other token finds the entry. */
export class TokenCache {
  /** The least recently used first. */
  readonly #tokens = new Map<string, Verified>()
  #chars = 0

  get(token: string): Verified | undefined {
    const verified = this.#tokens.get(token)
    if (verified === undefined) return undefined
    this.#tokens.delete(token)
    this.#tokens.set(token, verified)
    return verified
  }

  add(token: string, verified: Verified): void {
    this.delete(token)
    this.#tokens.set(token, verified)
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
