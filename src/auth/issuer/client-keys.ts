import type { JSONWebKeySet } from 'jose'
import * as z from 'zod/mini'
import type { HttpClient } from '../../core/ports/http.ts'
import { joinedBytes } from '../../protocol/bytes.ts'
import { parseJson } from '../../protocol/json.ts'

/** How long keys are used, and how long their place is left alone after they were read, or could not be. */
const KEPT_MS = 5 * 60_000
/** How long keys are used while newer ones cannot be read: whoever takes their keys away takes their access away. */
const STALE_MS = 3 * KEPT_MS
const LEAST_MS = 30_000
const MOST_BYTES = 64 * 1024
const TOTAL_MS = 5_000
const MOST_KEYS = 64

const KeySet = z.object({ keys: z.array(z.record(z.string(), z.unknown())).check(z.maxLength(MOST_KEYS)) })

export interface ClientKeysOptions {
  readonly http: Pick<HttpClient, 'request'>
  readonly monotonic: () => number
  /** Aborted when the server shuts down. */
  readonly closing: AbortSignal
  readonly onError: (error: unknown) => void
}

/** The public keys of a client, which lie at a place that the operator has named. They are read when they are needed, once for all who wait. */
export class ClientKeys {
  readonly #uri: string
  readonly #options: ClientKeysOptions
  #keys: JSONWebKeySet | undefined
  #goodAt = -Infinity
  #readAt = -Infinity
  #reading: Promise<void> | undefined

  constructor(uri: string, options: ClientKeysOptions) {
    this.#uri = uri
    this.#options = options
  }

  /** The keys; undefined while they cannot be read. */
  async current(): Promise<JSONWebKeySet | undefined> {
    if (this.#options.monotonic() - this.#readAt > KEPT_MS) await this.#read()
    return this.#options.monotonic() - this.#goodAt > STALE_MS ? undefined : this.#keys
  }

  /** Reads them again for a key that is not among them, but not often. False: they are the same as before. */
  async refresh(): Promise<boolean> {
    const before = this.#keys
    if (this.#reading || this.#options.monotonic() - this.#readAt > LEAST_MS) await this.#read()
    return this.#keys !== before
  }

  #read(): Promise<void> {
    return (this.#reading ??= this.#fetch()
      .catch((thrown: unknown) => this.#options.onError(thrown))
      .finally(() => {
        this.#readAt = this.#options.monotonic()
        this.#reading = undefined
      }))
  }

  async #fetch(): Promise<void> {
    const { status, body } = await this.#options.http.request({
      url: this.#uri,
      method: 'GET',
      headers: { accept: 'application/json' },
      signal: this.#options.closing,
      maxBytes: MOST_BYTES,
      timeouts: { firstByteMs: TOTAL_MS, idleMs: TOTAL_MS, totalMs: TOTAL_MS },
    })
    const pieces: Uint8Array[] = []
    for await (const piece of body) pieces.push(piece)
    if (status !== 200) throw new Error(`${this.#uri} answered ${status}`)
    this.#keys = z.parse(KeySet, parseJson(new TextDecoder().decode(joinedBytes(pieces)))) as JSONWebKeySet
    this.#goodAt = this.#options.monotonic()
  }
}
