import type { Purpose, Signer } from '../../core/ports/keys.ts'
import { KeySet, type Found, type KeySource } from './key-set.ts'
import type { Algorithm } from './token.ts'

/** How long a key that was taken away may still be used. */
const AGE_MS = 60_000

interface OwnKeysOptions {
  readonly signer: Pick<Signer, 'publicJwks'> | undefined
  readonly monotonic: () => number
  /** What they sign. Default: access tokens. */
  readonly purpose?: Purpose
}

/** The keys of this server, asked for without the network. */
export class OwnKeys implements KeySource {
  readonly #options: OwnKeysOptions
  #keys: KeySet | undefined
  #readAt = -Infinity

  constructor(options: OwnKeysOptions) {
    this.#options = options
  }

  async find(kid: string | undefined, alg: Algorithm): Promise<Found> {
    if (kid === undefined) return 'unknown'
    if (!this.#keys || this.#options.monotonic() - this.#readAt > AGE_MS) await this.#read()
    const found = await this.#keys?.find(kid, alg)
    if (found !== 'unknown') return found ?? 'unreachable'
    // A key that was made since.
    await this.#read()
    return (await this.#keys?.find(kid, alg)) ?? 'unreachable'
  }

  async #read(): Promise<void> {
    const { signer, monotonic, purpose = 'tokens' } = this.#options
    const keys = await signer?.publicJwks(purpose)
    this.#keys = KeySet.of(keys)
    this.#readAt = monotonic()
  }
}
