import { Bucket } from '../basics/bucket.ts'

const MINUTE_MS = 60_000
/** How long a document is used, whatever its server says. */
const AGE = { least: MINUTE_MS, usual: 5 * MINUTE_MS, most: 24 * 60 * MINUTE_MS }
/** How long it is used beyond that while a newer one cannot be read: a server that is down does not lock everybody out at once. */
const STALE_MS = 10 * MINUTE_MS
/** How long a server is left alone after its document could not be read. */
const FAILED_MS = MINUTE_MS
/** It is read again for what is not in it: a few times at once, for a server that has just replaced something, then seldom. */
const MISSING = { perSecond: 1 / 15, burst: 4 }

interface Fetched<T> {
  readonly value: T
  readonly maxAgeMs: number | undefined
}

export interface KeptDocumentOptions<T> {
  readonly fetch: (known: T | undefined) => Promise<Fetched<T>>
  readonly monotonic: () => number
  readonly onFailure: (error: unknown) => void
}

/** A document of another server, read when it is first needed and again when it is due. */
export class KeptDocument<T> {
  readonly #options: KeptDocumentOptions<T>
  readonly #missing: Bucket
  #value: T | undefined
  #dueAt = 0
  #retryAt = -Infinity
  #reading: Promise<void> | undefined

  constructor(options: KeptDocumentOptions<T>) {
    this.#options = options
    this.#missing = new Bucket({ ...MISSING, monotonic: options.monotonic })
  }

  /** True if the document could not be read a moment ago. */
  get isFailing(): boolean {
    return this.#options.monotonic() < this.#retryAt
  }

  /** Undefined: nobody knows it now. */
  async get(): Promise<T | undefined> {
    const now = this.#options.monotonic()
    if (this.#value === undefined || now >= this.#dueAt + STALE_MS) {
      await this.#read(now)
      // What is too old is no longer used, even if nothing newer can be read.
      return this.#options.monotonic() >= this.#dueAt + STALE_MS ? undefined : this.#value
    }
    if (now >= this.#dueAt) void this.#read(now)
    return this.#value
  }

  /** The document, read again because something is not in it. The same as before if it was read too often, or cannot be read. */
  async renewed(): Promise<T | undefined> {
    if (this.isFailing || !(this.#reading || this.#missing.take(1))) return this.#value
    await this.#read(this.#options.monotonic())
    return this.#value
  }

  /** Once for all who wait for it. Never rejects. */
  #read(now: number): Promise<void> {
    if (this.#reading) return this.#reading
    if (now < this.#retryAt) return Promise.resolve()
    this.#reading = this.#fetch().finally(() => {
      this.#reading = undefined
    })
    return this.#reading
  }

  async #fetch(): Promise<void> {
    const { fetch, monotonic, onFailure } = this.#options
    try {
      const { value, maxAgeMs = AGE.usual } = await fetch(this.#value)
      this.#value = value
      this.#dueAt = monotonic() + Math.min(AGE.most, Math.max(AGE.least, maxAgeMs))
    } catch (error) {
      this.#retryAt = monotonic() + FAILED_MS
      onFailure(error)
    }
  }
}
