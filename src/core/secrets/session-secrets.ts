import type { HttpClient, HttpRequest } from '../ports/http.ts'
import type { Redaction } from '../ports/redaction.ts'
import { redactedError, Walk } from './redaction.ts'
import { learningHttp } from './secret-http.ts'
import { secretsIn, Secrets } from './secrets.ts'

/** A shorter value is not learnt: a client may have chosen it, and it may be a word. */
const SHORTEST = 8
/** Values of one session that are remembered, and their length together. Beyond it the one that was used longest ago is forgotten. */
const VALUES = 32
const LENGTH = 16 * 1024

/**
 * Secrets that an agent shows to others while it works for one session: keys that stand in its code, and what its client brought.
 * Nobody can tell the two apart, so they are looked for in what that session says and in what the log says of it, and nowhere else:
 * a client that chooses its secrets well would else choose what other clients read. They go with the session.
 */
export class SessionSecrets {
  readonly #process: Redaction
  readonly #http: HttpClient
  /** The one that was used last is the last. */
  #values: readonly string[] = []
  #own: Secrets | undefined

  constructor({ secrets, http }: { readonly secrets: Redaction; readonly http: HttpClient }) {
    this.#process = secrets
    this.#http = http
  }

  /** What its agent calls others with. Made for each turn: an idle session has none. */
  get http(): HttpClient {
    return learningHttp(this.#http, this)
  }

  /** What a request shows to the other side, which may repeat it. */
  learn(request: Pick<HttpRequest, 'url' | 'headers'>): void {
    for (const value of secretsIn(request)) if (value.length >= SHORTEST && value !== this.#values.at(-1)) this.#learn(value)
  }

  #learn(value: string): void {
    // One that everybody is kept from reading.
    if (value.length > LENGTH || this.#process.text(value) !== value) return
    const isNew = !this.#values.includes(value)
    const values = [...this.#values.filter((other) => other !== value), value].slice(-VALUES)
    let length = values.reduce((sum, each) => sum + each.length, 0)
    while (length > LENGTH) length -= values.shift()?.length ?? 0
    this.#values = values
    if (isNew) this.#own = new Secrets(values)
  }

  text(text: string): string {
    const clean = this.#process.text(text)
    return this.#own ? this.#own.text(clean) : clean
  }

  /** Names of fields are left alone: they are nobody's secret but the process's. */
  value<T>(value: T): T {
    const clean = this.#process.value(value)
    return this.#own ? (new Walk(this.#own.text).through(clean) as T) : clean
  }

  /** What was thrown, for the log, which looks for the secrets of the process itself. */
  error(thrown: unknown): unknown {
    return this.#own ? redactedError(thrown, this.#own) : thrown
  }
}
