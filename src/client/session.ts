import type { EventOf, ServerEvent } from '../protocol/events.ts'
import type { InputEvent } from '../protocol/gather-input.ts'
import type { ClientDraft, Input, ResponseEvent } from './drafts.ts'
import type { Payment } from '../protocol/payment.ts'
import { DECLINED } from '../protocol/wallet.ts'
import { UampClientError } from './errors.ts'
import { Exchange, isTerminal } from './exchange.ts'
import type { Line, Position } from './line.ts'
import type { Payments } from './payments.ts'
import type { VerifyResponseOptions } from './verify.ts'

export interface AskOptions {
  /** Cancels the response. */
  readonly signal?: AbortSignal
  /** Overrides for this response only. */
  readonly response?: EventOf<'response.create'>['response']
  readonly response_format?: EventOf<'response.create'>['response_format']
  /**
   * Asks the server to sign the answer, and throws `bad_signature` instead of giving `response.done` if it does not, or wrongly. `issuer`:
   * who must sign, if that is not the address of the client; `jwks`: keys that are known already.
   */
  readonly verify?: boolean | Pick<VerifyResponseOptions, 'issuer' | 'jwks'>
}

/** Where the client is connected to. */
export interface Server {
  readonly base: string
  readonly fetch: typeof globalThis.fetch
  readonly payments?: Payments | undefined
}

/**
 * One conversation. Iterating it gives every event: the first loop gets them from the beginning, later ones from when they start. A loop
 * ends with `slow_consumer` if more than 4 Mi characters of events pile up, and with `gap` if the server no longer has missed events. The
 * session goes on.
 */
export class Session implements AsyncIterable<ServerEvent> {
  readonly id: string
  readonly #line: Line
  readonly #server: Server
  #exchange: Exchange | undefined
  #abandoned = false

  constructor(id: string, line: Line, server: Server) {
    this.id = id
    this.#server = server
    this.#line = line
    line.listen((event) => this.#exchange?.see(event))
    void line.closed.then(() => this.#exchange?.finish())
  }

  /** The last received event, from which the session can be resumed, also in another process. A slow loop has its own `seq`. */
  get position(): Position {
    return { session_id: this.id, after: this.#line.seq }
  }

  /**
   * Sends a message, and yields the events of the response up to `response.done` or `response.cancelled`. Throws a `response.error`.
   * Leaving the loop, or aborting the signal, cancels the response. Nothing is sent before the first `next()`.
   */
  async *ask(input: string | Input | readonly Input[], options: AskOptions = {}): AsyncGenerator<ResponseEvent, void> {
    const { signal, verify = false, ...overrides } = options
    signal?.throwIfAborted()
    while (this.#exchange && !this.#exchange.isOver) {
      if (!this.#abandoned) throw new UampClientError({ code: 'response_in_progress', message: 'The session has not finished its answer' })
      await settled(this.#exchange.over, signal)
      signal?.throwIfAborted()
    }
    const said = inputs(input).map((event) => ({ event_id: this.#line.newId(), ...event }))
    const event_id = this.#line.newId()
    const parts = said.map((event) => event.event_id)
    const exchange = (this.#exchange = new Exchange(Math.max(this.#line.seq, this.#line.head), event_id, parts))
    this.#abandoned = false
    const queue = this.#line.subscribe((event) => !exchange.refused && exchange.owns(event))
    const aborted = (): void => void queue.return()
    signal?.addEventListener('abort', aborted)
    const sent = said.map((event) => this.send(event))
    const asked = this.send({ type: 'response.create', event_id, ...overrides, ...(verify && { extensions: { uamp: { sign: true } } }) })
    asked.catch(() => exchange.finish())
    Promise.all([...sent, asked]).catch((error: unknown) => {
      exchange.refused = true
      queue.end(error)
    })
    let cutOff = false
    try {
      for await (const event of queue as AsyncIterable<ResponseEvent>) {
        if (event.type === 'response.error') throw this.#server.payments?.refusal(event) ?? UampClientError.from(event)
        if (verify && event.type === 'response.done')
          await this.#verify(event, said as readonly InputEvent[], verify === true ? {} : verify)
        yield event
        if (isTerminal(event)) return
      }
      signal?.throwIfAborted()
      throw this.#line.reason ?? new UampClientError({ code: 'closed', message: 'The session was closed before the answer was complete' })
    } catch (error) {
      cutOff = error instanceof UampClientError
      throw error
    } finally {
      signal?.removeEventListener('abort', aborted)
      void queue.return()
      // A slow reader has not left. It may resume, and the response goes on.
      if (!exchange.isOver && (!cutOff || exchange.refused)) this.#abandon(exchange)
    }
  }

  /** Sends a message and resolves with the text of the answer. */
  async say(input: string | Input | readonly Input[], options?: AskOptions): Promise<string> {
    let text = ''
    for await (const event of this.ask(input, options)) {
      if (event.type === 'response.delta' && event.delta.type === 'text') text += event.delta.text
      // An agent may say everything in `response.done`.
      else if (event.type === 'response.done' && text === '') for (const item of event.response.output) text += textIn(item)
      else if (event.type === 'response.cancelled') {
        throw new UampClientError({
          code: 'cancelled',
          message: 'The response was cancelled',
          details: { partial_output: event.partial_output },
        })
      }
    }
    return text
  }

  /** Sends any client event. Resolves when the server has stored it. Until then it is sent again after a reconnect. */
  send(draft: ClientDraft): Promise<void> {
    if (draft.type === 'response.create') this.#server.payments?.asked()
    return this.#line.send(draft)
  }

  /** Answers `payment.required`. Without a payment, declines: the response then fails with `payment_required`. */
  pay(payment: Payment = DECLINED): Promise<void> {
    return this.send({ type: 'payment.submit', payment })
  }

  /** Stops the running response, whose caller gets `response.cancelled`. */
  cancel(): Promise<void> {
    const id = this.#exchange?.isOver === false ? this.#exchange.id : undefined
    return this.send({ type: 'response.cancel', ...(id !== undefined && { response_id: id }) })
  }

  /** Ends the session for everybody. To keep it, close the client instead. */
  async end(reason?: string): Promise<void> {
    await this.send({ type: 'session.end', ...(reason !== undefined && { reason }) }).catch((error: unknown) => {
      // The server's own session.end may come before its acknowledgement.
      if (!this.#line.over) throw error
    })
    this.#line.close(new UampClientError({ code: 'closed', message: 'The session has ended' }))
  }

  [Symbol.asyncIterator](): AsyncIterableIterator<ServerEvent, undefined> {
    return this.#line.events()
  }

  async #verify(event: EventOf<'response.done'>, said: readonly InputEvent[], options: VerifyResponseOptions): Promise<void> {
    const { base: issuer, fetch } = this.#server
    const { verifyDone, requestOf } = await import('./verify.ts')
    const { valid, problems, claims } = await verifyDone(event, { issuer, fetch, request: requestOf(said), ...options }).catch(
      (thrown: unknown) => ({ valid: false, problems: [String(thrown)], claims: {} as Record<string, unknown> }),
    )
    if (valid && claims['response_id'] === event.response.id) return
    const [problem = 'The signature belongs to another response'] = problems
    throw new UampClientError({ code: 'bad_signature', message: problem, details: { problems } })
  }

  /** Cancels a response that nobody reads. The next one waits until it is over. */
  #abandon(exchange: Exchange): void {
    this.#abandoned = true
    void exchange.begun.then(async () => {
      if (!exchange.isOver && exchange.id !== undefined)
        await this.send({ type: 'response.cancel', response_id: exchange.id }).catch(() => undefined)
    })
  }
}

function textIn(item: EventOf<'response.done'>['response']['output'][number]): string {
  return item.type === 'text' ? item.text : ''
}

function inputs(input: string | Input | readonly Input[]): readonly Input[] {
  if (typeof input === 'string') return [{ type: 'input.text', text: input }]
  return Array.isArray(input) ? (input as readonly Input[]) : [input as Input]
}

/** Resolves with the promise, or when the signal is aborted. */
async function settled(promise: Promise<void>, signal: AbortSignal | undefined): Promise<void> {
  let aborted = (): void => undefined
  const abort = new Promise<void>((resolve) => (aborted = resolve))
  signal?.addEventListener('abort', aborted)
  await Promise.race([promise, abort])
  signal?.removeEventListener('abort', aborted)
}
