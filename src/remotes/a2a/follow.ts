import { UampError } from '../../protocol/errors.ts'
import { backoff } from '../../wire/backoff.ts'
import type { Endpoint, Heard } from './endpoint.ts'
import { isOtherTongue, reasonOf } from './errors.ts'
import { ENDED, SETTLED, type Outgoing, type State, type Status, type Told, type ToldTask } from './model.ts'
import { pause, unlessAborted } from '../../core/basics/time.ts'

/** How often in a row we try in vain to resume a broken stream. */
const TRIES = 6
/** The pause between two requests for a task: the first, and the longest. */
const LOOK_MS = 200
const LOOK_MAX_MS = 3_000
/** How often a task may still show the question that was just answered. */
const DOUBTS = 5
/** Time for the cancel when a turn is left, which nobody waits for. */
const GOODBYE_MS = 5_000
/** Time to read a stream to its end after its task has ended, so that the connection can be used again. */
const LINGER_MS = 1_000

export interface FollowOptions {
  readonly endpoint: Endpoint
  /** The signal of our turn. */
  readonly signal: AbortSignal
  readonly streaming: boolean
  readonly outputModes: readonly string[]
}

/**
 * Follows one task of the other side, from the message that begins it to its end: by its stream, by the stream resumed, or by asking
 * for it now and then.
 */
export class Follow {
  taskId: string | undefined
  contextId: string | undefined
  state: State | undefined
  readonly #options: FollowOptions
  /** Not the turn's own signal: after a cancel we read on until we know the id of the task, and can cancel it there. */
  readonly #line = new AbortController()
  readonly #wait = backoff({ minMs: 100, maxMs: 5_000 })
  #streaming: boolean
  #lastEventId: string | undefined
  #pending: Promise<unknown> | undefined
  #rest: Promise<unknown> = Promise.resolve()
  #sent = false
  /** The last question. */
  #asked: string | undefined
  #doubts = 0

  constructor(options: FollowOptions) {
    this.#options = options
    this.#streaming = options.streaming
  }

  get settled(): boolean {
    return this.state !== undefined && SETTLED.has(this.state)
  }

  /** Sends a message, and yields all that the agent says until an end or a question. */
  async *send(message: Outgoing): AsyncGenerator<readonly Told[], void> {
    this.state = undefined
    this.#doubts = message.taskId === undefined ? 0 : DOUBTS
    this.taskId = message.taskId
    this.contextId = message.contextId ?? this.contextId
    if (this.#streaming) {
      try {
        yield* this.#live(this.#open(message, true))
        if (!this.settled) yield* this.#resume()
        return
      } catch (thrown) {
        this.#options.signal.throwIfAborted()
        const refused = reasonOf(thrown)
        if (this.state !== undefined) {
          if (refused !== undefined || this.taskId === undefined) throw thrown
          yield* this.#resume()
          return
        }
        if (message.taskId !== undefined || (refused !== 'UNSUPPORTED_OPERATION' && refused !== 'METHOD_NOT_FOUND')) throw thrown
        // The agent does not stream, though its card says so.
        this.#streaming = false
      }
    }
    yield* this.#live(this.#open(message, false))
    if (!this.settled) yield* this.#poll()
  }

  /** The task as it is now. */
  async get(taskId: string): Promise<ToldTask> {
    const { endpoint } = this.#options
    const told = await this.#hear(endpoint.call(endpoint.dialect.get(taskId), this.#line.signal))
    if (told.kind !== 'task') throw new UampError('provider_error', 'The answer of the remote agent is no task')
    return told
  }

  /** Cancels a task that still runs, and with `abandon` also one that waits for an answer. Does not block. */
  leave({ abandon }: { readonly abandon: boolean }): void {
    const over = this.#ended || (this.settled && !abandon)
    const last = over || !this.#sent ? unlessAborted(this.#rest, AbortSignal.timeout(LINGER_MS)) : this.#cancel()
    // The task may have ended, or the other side may be gone.
    last.catch(() => undefined).finally(() => this.#line.abort())
  }

  get #ended(): boolean {
    return this.state !== undefined && ENDED.has(this.state)
  }

  async #cancel(): Promise<void> {
    const { endpoint } = this.#options
    const signal = AbortSignal.timeout(GOODBYE_MS)
    // The answer that names the task may be on its way.
    if (this.taskId === undefined && this.#pending) await unlessAborted(this.#pending, signal)
    if (this.taskId !== undefined && !this.#ended) await endpoint.call(endpoint.dialect.cancel(this.taskId), signal)
  }

  #open(message: Outgoing, stream: boolean): AsyncGenerator<readonly Heard[], void> {
    const { endpoint, outputModes } = this.#options
    const ask = endpoint.dialect.send(message, { stream, outputModes })
    // In 0.1 the client names the task, and so can cancel it from the start.
    if (endpoint.dialect.version === '0.1') this.taskId = message.taskId ?? message.messageId
    this.#sent = true
    return stream ? endpoint.stream(ask, this.#line.signal) : once(endpoint.call(ask, this.#line.signal, { once: true }))
  }

  async *#live(stream: AsyncGenerator<readonly Heard[], void>): AsyncGenerator<readonly Told[], void> {
    try {
      for (;;) {
        const { done, value } = await this.#hear(stream.next())
        if (done) return
        yield value.map(({ told }) => told)
        if (this.settled) return
      }
    } finally {
      this.#rest = (this.#ended ? drain(stream) : stream.return()).catch(() => undefined)
    }
  }

  /** Waits for an answer, unless the turn is cancelled. Notes what it tells of the task even then. */
  async #hear<T extends Told | IteratorResult<readonly Heard[], void>>(promise: Promise<T>): Promise<T> {
    const noted = promise.then((value) => {
      this.#pending = undefined
      if ('kind' in value) this.#note(value)
      else if (!value.done) for (const { told, id } of value.value) this.#note(told, id)
      return value
    })
    this.#pending = noted
    noted.catch(() => (this.#pending = undefined))
    return unlessAborted(noted, this.#options.signal)
  }

  #note(told: Told, id?: string): void {
    if (id !== undefined) this.#lastEventId = id
    if (told.kind === 'message') {
      this.contextId = told.message.contextId ?? this.contextId
      // An agent that answers with a message has no task to follow.
      if (this.taskId === undefined) this.state = 'completed'
      return
    }
    this.taskId = told.taskId ?? this.taskId
    this.contextId = told.contextId ?? this.contextId
    this.state = told.kind === 'artifact' ? (this.state ?? 'working') : this.#stateOf(told.status)
  }

  /** Servers begin with the task as it was before our answer. A question that we have answered does not count as a new one. */
  #stateOf({ state, message }: Status): State {
    if (ENDED.has(state) || !SETTLED.has(state)) {
      if (state !== 'submitted') this.#doubts = 0
      return state
    }
    const asked = message?.id ?? JSON.stringify(message?.parts)
    if (asked === this.#asked && this.#doubts-- > 0) return 'working'
    this.#asked = asked
    return state
  }

  /** Resumes a stream that broke off while its task goes on. */
  async *#resume(): AsyncGenerator<readonly Told[], void> {
    let last: unknown
    for (let failures = 0; failures < TRIES; failures++) {
      await pause(this.#wait(failures), this.#options.signal)
      try {
        for await (const told of this.#again()) {
          yield told
          failures = 0
        }
        // A stream that ends before its task is of no use.
        return this.settled ? undefined : yield* this.#poll()
      } catch (thrown) {
        this.#options.signal.throwIfAborted()
        // A task that has ended has no stream (A2A 1.0 §3.1.6), and some agents never stream a task a second time.
        if (reasonOf(thrown) !== undefined || isOtherTongue(thrown)) return yield* this.#poll()
        last = thrown
      }
    }
    throw last instanceof UampError ? last : new UampError('provider_error', 'The answer of the remote agent was cut off')
  }

  /**
   * The stream, taken up again. From a server that goes on behind the last event that we have, it is as if nothing had happened.
   * Others begin with the task as it is, and what they say next may be in it already, or missing from both: servers in the field do
   * either. So there the events only tell when to look at the task.
   */
  async *#again(): AsyncGenerator<readonly Told[], void> {
    const { endpoint } = this.#options
    const { taskId = '' } = this
    const stream = endpoint.streamAny(endpoint.dialect.subscribe(taskId), this.#line.signal, this.#lastEventId)
    try {
      const first = await this.#hear(stream.next())
      if (first.done) return
      if (this.#lastEventId !== undefined && first.value[0]?.told.kind !== 'task') {
        yield first.value.map(({ told }) => told)
        if (!this.settled) yield* this.#live(stream)
        return
      }
      const news = new News(stream)
      for (;;) {
        const { over } = news
        yield [await this.get(taskId)]
        if (this.settled || over) return
        await unlessAborted(news.next(), this.#options.signal)
        await pause(LOOK_MS, this.#options.signal)
      }
    } finally {
      void stream.return().catch(() => undefined)
    }
  }

  async *#poll(): AsyncGenerator<readonly Told[], void> {
    const { taskId } = this
    if (taskId === undefined) throw new UampError('provider_error', 'The remote agent named no task')
    for (let ms = LOOK_MS; ; ms = Math.min(LOOK_MAX_MS, ms * 1.5)) {
      yield [await this.get(taskId)]
      if (this.settled) return
      await pause(ms, this.#options.signal)
    }
  }
}

/** Tells that something happened on a stream, however much. */
class News {
  over = false
  #some = false
  #wake: () => void = () => undefined

  constructor(stream: AsyncIterable<unknown>) {
    void this.#read(stream)
  }

  async next(): Promise<void> {
    if (!this.#some && !this.over) await new Promise<void>((resolve) => (this.#wake = resolve))
    this.#some = false
  }

  async #read(stream: AsyncIterable<unknown>): Promise<void> {
    try {
      for await (const _ of stream) {
        this.#some = true
        this.#wake()
      }
    } catch {
      // The stream broke again.
    }
    this.over = true
    this.#wake()
  }
}

async function drain(stream: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of stream);
}

async function* once(told: Promise<Told>): AsyncGenerator<readonly Heard[], void> {
  yield [{ told: await told, id: undefined }]
}
