import type { Principal } from '../../../core/ports/access.ts'
import type { GuardedHttp } from '../../../core/ports/http.ts'
import type { Redaction } from '../../../core/ports/redaction.ts'
import type { Host } from '../../../core/ports/transport.ts'
import { pause } from '../../../core/basics/time.ts'
import { retryAfter } from '../../../core/http/upstream-error.ts'
import { UampError } from '../../../protocol/errors.ts'
import { backoff } from '../../../wire/backoff.ts'
import type { Generation, PushConfig, StreamEvent, Task, TaskStatus } from '../model.ts'
import type { KeptConfig } from './configs.ts'
import type { Gates } from './gate.ts'
import type { Notified } from './index.ts'
import type { PushLimits } from './limits.ts'

/** What all outboxes of a server share. */
export interface Post {
  readonly host: Host
  readonly outbound: GuardedHttp
  readonly limits: PushLimits
  readonly shape: (task: Task, generation: Generation) => object
  /** Bounds the requests under way. */
  readonly gates: Gates
  /** Characters that wait in all outboxes. */
  readonly waiting: { length: number }
}

/** The owner of an outbox. */
interface Whose {
  readonly owner: Principal
  /** By which the gates know the owner. */
  readonly key: string
  /** Everything has been sent, or given up. */
  readonly onIdle: () => void
}

/** Events on their way to one webhook: one request after the other, in their order. */
export class Outbox {
  #config: KeptConfig
  readonly #post: Post
  readonly #whose: Whose
  readonly #pause: (failures: number) => number
  readonly #closing = new AbortController()
  #queue: Item[] = []
  #length = 0
  #running = false
  /** Failures in a row. */
  #failures = 0
  /** One event is out of the queue and not yet delivered. */
  #sending = false
  /** The operator has been warned that the webhook fails, which happens once until it works again. */
  #told = false

  constructor(config: KeptConfig, post: Post, whose: Whose) {
    this.#config = config
    this.#post = post
    this.#whose = whose
    const { firstPauseMs, longestPauseMs } = post.limits
    this.#pause = backoff({ minMs: firstPauseMs, maxMs: longestPauseMs })
  }

  get idle(): boolean {
    return !this.#running
  }

  /** Events that wait go to the new address. */
  replace(config: KeptConfig): void {
    this.#config = config
  }

  push(of: Notified, event: StreamEvent): void {
    const { limits, waiting } = this.#post
    const item = itemOf(of, event, this.#generation(of))
    if (!item || this.#closing.signal.aborted) return
    const length = lengthOf(item)
    this.#queue.push(item)
    this.#length += length
    waiting.length += length
    const full = this.#queue.length > limits.queuedEvents || this.#length > limits.queuedLength || waiting.length > limits.totalLength
    if (full) this.#collapse(of)
    if (!this.#running) void this.#run(of)
  }

  /** That of the method which set the config; for a config of an earlier version, that of the task. */
  #generation(of: Notified): Generation {
    return this.#config.generation ?? of.generation
  }

  /** Nothing more is sent. Returns how many events are lost. */
  close(): number {
    const lost = this.#queue.length + (this.#sending ? 1 : 0)
    this.#closing.abort()
    this.#clear()
    return lost
  }

  /** Never rejects: a webhook must not stop anything else. */
  async #run(of: Notified): Promise<void> {
    this.#running = true
    try {
      while (this.#queue.length > 0) {
        const item = this.#queue.shift()
        if (!item) break
        this.#sending = true
        const delivered = await this.#deliver(item, of).finally(() => this.#forget(item))
        this.#sending = false
        if (!delivered && this.#queue.length > 1) this.#collapse(of)
      }
    } catch (error) {
      this.#post.host.log('error', 'A push notification could not be made', { task: of.taskId, config: this.#config.id, error })
      this.#clear()
    } finally {
      this.#sending = false
      this.#running = false
      this.#whose.onIdle()
    }
  }

  /** False: the event was dropped. */
  async #deliver(item: Item, { taskId }: Notified): Promise<boolean> {
    const { host, limits, gates } = this.#post
    const { signal } = this.#closing
    const contentType = item.generation === '1.0' ? 'application/a2a+json' : 'application/json'
    for (let attempt = 1; !signal.aborted; attempt++) {
      const config = this.#config
      const sent = await gates.run(this.#whose.key, () => this.#send(item, config, contentType))
      if (sent.delivered) {
        this.#failures = 0
        this.#told = false
        return true
      }
      // Whoever closed the outbox has counted what is lost.
      if (signal.aborted) return false
      this.#failures++
      if (!sent.mayPass || attempt >= limits.attempts) {
        const place = { task: taskId, config: config.id, host: new URL(config.url).host }
        host.log(this.#told ? 'debug' : 'warn', 'A push notification was dropped', { ...place, why: sent.why })
        this.#told = true
        return false
      }
      const asked = sent.retryAfterMs
      const ms = asked === undefined ? this.#pause(this.#failures - 1) : Math.min(asked, limits.longestRetryAfterMs)
      // Closing ends the pause.
      await pause(ms, signal).catch(() => undefined)
    }
    return false
  }

  /** Makes the body now and keeps it only for one request: a task may be large, and have many webhooks. */
  async #send(item: Item, config: PushConfig, contentType: string): Promise<Sent> {
    const { host, shape } = this.#post
    // A webhook is a way to read on, which ends with the access.
    if (host.revocations?.find(this.#whose.owner) === 'principal') {
      return { delivered: false, why: 'the access of its owner was revoked', mayPass: false }
    }
    const hold = host.gateway.hold(this.#whose.owner, 0)
    try {
      const body = redacted(await bodyOf(item, shape), host.secrets)
      hold.grow(body.length)
      return await this.#request(config, body, contentType)
    } catch (thrown) {
      if (UampError.from(thrown).code !== 'overloaded') throw thrown
      return { delivered: false, why: 'its owner holds too much in memory', mayPass: true }
    } finally {
      hold.close()
    }
  }

  /** One request. A redirect counts as a refusal: nobody has checked where it leads, and the credentials are not meant for that place. */
  async #request({ url, token, authentication }: PushConfig, body: string, contentType: string): Promise<Sent> {
    const { outbound, limits } = this.#post
    const { timeoutMs } = limits
    const { signal } = this.#closing
    const headers = {
      'content-type': contentType,
      ...(authentication?.credentials !== undefined && { authorization: `${authentication.scheme} ${authentication.credentials}` }),
      ...(token !== undefined && { 'x-a2a-notification-token': token }),
    }
    const timeouts = { firstByteMs: timeoutMs, idleMs: timeoutMs, totalMs: timeoutMs }
    try {
      const answer = await outbound.request({ url, method: 'POST', headers, body, signal, maxBytes: ANSWER_BYTES, timeouts })
      await drain(answer.body)
      const { status } = answer
      if (status >= 200 && status < 300) return { delivered: true }
      const mayPass = status === 408 || status === 425 || status === 429 || status >= 500
      return { delivered: false, why: `it answered ${status}`, mayPass, retryAfterMs: retryAfter(answer.headers) }
    } catch (thrown) {
      if (thrown instanceof UampError && thrown.code === 'forbidden') return { delivered: false, why: thrown.message, mayPass: false }
      const { code, name } = thrown as { code?: unknown; name?: unknown }
      const why =
        name === 'TimeoutError'
          ? `it did not answer within ${timeoutMs} ms`
          : `it cannot be reached${typeof code === 'string' ? ` (${code})` : ''}`
      return { delivered: false, why, mayPass: true }
    }
  }

  /** All events that wait become one: the task, as it is when its turn comes. */
  #collapse(of: Notified): void {
    this.#clear()
    this.#queue.push({ kind: 'task', of, status: undefined, generation: this.#generation(of) })
  }

  #clear(): void {
    for (const item of this.#queue.splice(0)) this.#forget(item)
  }

  #forget(item: Item): void {
    this.#length -= lengthOf(item)
    this.#post.waiting.length -= lengthOf(item)
  }
}

/** A body without the secrets that an agent may have said. Nobody waits for it, so all of it is looked at. */
function redacted(body: string, secrets: Redaction): string {
  return secrets.text(body) === body ? body : JSON.stringify(secrets.value(JSON.parse(body) as unknown))
}

/** What waits for a webhook, in the shape of a generation. */
type Item = { readonly generation: Generation } &
  /** A body that is ready. */
  (
    | { readonly kind: 'body'; readonly body: string }
    /** A task, which is read when its turn comes. `status`: the status that it is sent for. */
    | { readonly kind: 'task'; readonly of: Notified; readonly status: TaskStatus | undefined }
  )

/** Undefined: webhooks of this generation are not told of the event. */
function itemOf(of: Notified, event: StreamEvent, generation: Generation): Item | undefined {
  if (generation === '1.0') return { kind: 'body', body: JSON.stringify(event), generation }
  // Before 1.0 a webhook gets the whole task, so it is not called for an artifact, which the next status brings.
  if ('statusUpdate' in event) return { kind: 'task', of, status: event.statusUpdate.status, generation }
  return 'task' in event ? { kind: 'task', of, status: event.task.status, generation } : undefined
}

function lengthOf(item: Item): number {
  return item.kind === 'body' ? item.body.length : 0
}

async function bodyOf(item: Item, shape: Post['shape']): Promise<string> {
  if (item.kind === 'body') return item.body
  const task = await item.of.task()
  const { generation } = item
  return JSON.stringify(generation === '1.0' ? { task } : shape(item.status ? { ...task, status: item.status } : task, generation))
}

/** `why` is for the log: it never has the URL's path, the token or the credentials in it. */
type Sent =
  | { readonly delivered: true }
  | { readonly delivered: false; readonly why: string; readonly mayPass: boolean; readonly retryAfterMs?: number | undefined }

/** Bytes of an answer that are read, so that the connection can be used again. */
const ANSWER_BYTES = 64 * 1024

/** Reads a body to its end. Its content and its errors do not matter, as the status has said it all. */
async function drain(body: AsyncIterable<Uint8Array>): Promise<void> {
  try {
    for await (const _ of body);
  } catch {}
}
