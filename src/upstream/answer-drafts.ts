import type { Draft } from '../protocol/events.ts'

/** Turns one answer of one vendor into drafts. `T`: the data of an event, or an answer in one piece. */
export interface AnswerReader<T = string> {
  /** Adds to `out` what the data of an event says. Throws if that is a failure. */
  read(data: T, out: Draft[]): void
  /** The answer is complete: it does not matter if the connection breaks afterwards. */
  readonly over: boolean
  /** How long a complete answer may still be taken back while the connection stays open; undefined: as long as it does. */
  readonly lingerMs?: number
  /** Adds the usage so far, once. */
  usage(out: Draft[]): void
  /** Adds what the end of the stream says. Throws if the answer was cut off. */
  end(out: Draft[]): void
}

/** Events that came together. */
export type EventBatch<T = string> = readonly { readonly data: T }[]

/** Sends the request, and gives its answer as it comes. */
type Open<T> = () => AsyncIterable<EventBatch<T>> | Promise<AsyncIterable<EventBatch<T>>>

/** The drafts of an answer. A failure is thrown after all that the answer said and spent before it. */
export function answerDrafts<T = string>(open: Open<T>, reader: AnswerReader<T>): AsyncIterableIterator<Draft, undefined> {
  return new AnswerDrafts(open, reader)
}

type Step = IteratorResult<Draft, undefined>

const DONE: Step = { done: true, value: undefined }

/** Not a generator: every word of a model passes here, and drafts that came together are handed on without waiting in between. */
class AnswerDrafts<T> implements AsyncIterableIterator<Draft, undefined> {
  readonly #open: Open<T>
  readonly #reader: AnswerReader<T>
  #batches: AsyncIterator<EventBatch<T>> | undefined
  #told: Draft[] = []
  /** How many of them have been handed on. */
  #at = 0
  #over = false
  /** Until when a complete answer may be taken back. */
  #until: number | undefined
  /** Thrown after the last draft. */
  #failure: { readonly reason: unknown } | undefined

  constructor(open: Open<T>, reader: AnswerReader<T>) {
    this.#open = open
    this.#reader = reader
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  next(): Promise<Step> {
    const value = this.#told[this.#at]
    if (!value) return this.#more()
    this.#at++
    return Promise.resolve({ done: false, value })
  }

  async return(): Promise<Step> {
    this.#end()
    this.#told = []
    this.#failure = undefined
    await this.#batches?.return?.()
    return DONE
  }

  async #more(): Promise<Step> {
    for (;;) {
      this.#told.length = this.#at = 0
      if (!this.#over) await this.#read()
      const value = this.#told[0]
      if (value) {
        this.#at = 1
        return { done: false, value }
      }
      if (!this.#over) continue
      const failure = this.#failure
      this.#failure = undefined
      if (failure) throw failure.reason
      return DONE
    }
  }

  /** The next batch, or the end. */
  async #read(): Promise<void> {
    const reader = this.#reader
    try {
      const batches = (this.#batches ??= (await this.#open())[Symbol.asyncIterator]())
      // The reader left while the request was being sent.
      if (this.#over) return void (await batches.return?.())
      const { done, value: batch } = await (reader.over && reader.lingerMs !== undefined
        ? linger(batches, (this.#until ??= performance.now() + reader.lingerMs))
        : batches.next())
      if (this.#over) return
      if (!done) {
        for (const { data } of batch) reader.read(data, this.#told)
        if (!reader.over) this.#until = undefined
        return
      }
    } catch (reason) {
      if (this.#over) return
      void Promise.resolve(this.#batches?.return?.()).catch(() => undefined)
      if (!reader.over) {
        this.#end(reason)
        reader.usage(this.#told)
        return
      }
    }
    this.#end()
    try {
      reader.end(this.#told)
    } catch (reason) {
      this.#end(reason)
    }
  }

  #end(reason?: unknown): void {
    this.#over = true
    if (reason !== undefined) this.#failure = { reason }
  }
}

/** The next events, or the end of the stream at that time. */
async function linger<B>(batches: AsyncIterator<B>, until: number): Promise<IteratorResult<B, unknown>> {
  const ms = until - performance.now()
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<undefined>((resolve) => (timer = setTimeout(resolve, ms, undefined)))
  const next = ms > 0 ? batches.next() : undefined
  const step = await Promise.race([next ?? late, late])
  clearTimeout(timer)
  if (step) return step
  next?.catch(() => undefined)
  await batches.return?.()
  return { done: true, value: undefined }
}

/** A call of a tool, or a piece of its arguments. */
export function callDraft(id: string, name: string, args: string): Draft {
  return { type: 'response.delta', delta: { type: 'tool_call', tool_call: { id, name, arguments: args } } }
}

/** A piece of the text by which a model declines. */
export function refusalDraft(text: string): Draft {
  return { type: 'response.delta', delta: { type: 'text', text, refusal: true } }
}

/** An answer that came in one piece. */
export async function* inOnePiece<T>(data: T): AsyncGenerator<EventBatch<T>, void> {
  yield [{ data }]
}
