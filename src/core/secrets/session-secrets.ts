import type { HttpClient, HttpRequest } from '../ports/http.ts'
import type { Redaction } from '../ports/redaction.ts'
import { redactedError, Walk } from './redaction.ts'
import { secretsIn, Secrets } from './secrets.ts'

/** A shorter value is not learnt: a client may have chosen it, and it may be a plain word. */
const SHORTEST = 8
/** How many values a session remembers, and their total length. Beyond it the least recently used one is forgotten. */
const VALUES = 32
const LENGTH = 16 * 1024

/**
 * Secrets that an agent sends to others while it works for one session: keys in its code, and credentials that its client brought.
 * The two cannot be told apart, so they are removed only from what this session says and from what is logged about it. Otherwise a
 * client could choose "secrets" to blank out what other clients read. They are forgotten with the session.
 */
export class SessionSecrets {
  readonly #process: Redaction
  readonly #http: HttpClient
  /** The most recently used value is the last. */
  #values: readonly string[] = []
  #own: Secrets | undefined

  constructor({ secrets, http }: { readonly secrets: Redaction; readonly http: HttpClient }) {
    this.#process = secrets
    this.#http = http
  }

  /** The HTTP client of the agent. Made for each turn, so that an idle session has none. */
  get http(): HttpClient {
    return learningHttp(this.#http, this)
  }

  /** Remembers the secrets of a request, because the other side may repeat them. */
  learn(request: Pick<HttpRequest, 'url' | 'headers'>): void {
    for (const value of secretsIn(request)) if (value.length >= SHORTEST && value !== this.#values.at(-1)) this.#learn(value)
  }

  #learn(value: string): void {
    // Skip secrets that the process removes anyway.
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

  /** Leaves the names of fields alone: only the process's own secrets are removed from those. */
  value<T>(value: T): T {
    const clean = this.#process.value(value)
    return this.#own ? (new Walk(this.#own.text).through(clean) as T) : clean
  }

  /** The thrown error for the log, which itself removes the secrets of the process. */
  error(thrown: unknown): unknown {
    return this.#own ? redactedError(thrown, this.#own) : thrown
  }
}

/**
 * Wraps a client so that it remembers the secrets that it sends, because the other side may repeat them. So a key that is written in
 * somebody's code is known in time, like one from the configuration.
 */
function learningHttp(http: HttpClient, secrets: { learn(request: HttpRequest): void }): HttpClient {
  const learning = (client: HttpClient) => (sent: HttpRequest) => {
    secrets.learn(sent)
    return client.request(sent)
  }
  const { guarded } = http
  return {
    request: learning(http),
    ...(guarded && { guarded: { request: learning(guarded), refuses: (url) => guarded.refuses(url) } }),
  }
}
