import { defer } from '../../core/defer.ts'
import { ResponseBatches } from '../../core/response-batches.ts'
import type { Batch, Reader, Session } from '../../core/ports/session.ts'
import type { Host, KnownCall, Log } from '../../core/ports/transport.ts'
import { UampError } from '../../protocol/errors.ts'
import type { EventOf } from '../../protocol/events.ts'
import { toldError } from '../../wire/openai/errors.ts'
import { paymentFrom, paymentRefusal } from '../../wire/payment.ts'
import type { Asked } from './request.ts'

const PAYMENT: ReadonlySet<string> = new Set(['payment.required'])

/** One choice: a session that nobody keeps, and its one response. */
export class Run {
  readonly #session: Session
  readonly #reader: Reader
  readonly #log: Log
  readonly #batches: ResponseBatches
  #closed = false

  private constructor(session: Session, reader: Reader, log: Log) {
    this.#session = session
    this.#reader = reader
    this.#log = log
    this.#batches = new ResponseBatches(reader)
  }

  static async start(host: Host, call: KnownCall, { agent, asked }: { agent: string; asked: Asked }): Promise<Run> {
    const { messages, config, store, stream } = asked
    const payment = paymentFrom(call.request.headers)
    const session = await host.gateway.open({
      transport: 'completions',
      agent,
      principal: call.principal,
      config,
      duplex: false,
      persist: store,
      onDetach: 'cancel',
      input: messages,
      silent: !stream,
      ...(payment && { payment }),
    })
    const run = new Run(session, session.read(), host.log)
    try {
      await session.send({ type: 'response.create', event_id: host.newId() })
      // Most short answers are there before it would pay to ask for the signal.
      defer(() => defer(() => run.#stopWith(call)))
      return run
    } catch (error) {
      run.close()
      throw error
    }
  }

  /** Waits for the first word. Throws what is refused before it. */
  async begin(): Promise<void> {
    const refused = await this.#batches.preflight()
    if (!refused) return
    this.close()
    throw refused.type === 'payment.required' ? paymentRefusal(refused) : toldError(refused.error)
  }

  /** The next events, up to the end of the response. `last`: they hold it. */
  async next(): Promise<{ readonly batch: Batch; readonly last: boolean } | undefined> {
    const batch = await this.#batches.take()
    if (!batch) return undefined
    const last = this.#batches.over
    if (last) this.close()
    return { batch, last }
  }

  /** Reads to the end without looking at what is in between. Throws if it is not a good one. */
  async end(): Promise<EventOf<'response.done'>> {
    try {
      for (let step = await this.next(); step; step = await this.next()) {
        if (step.last || step.batch.has(PAYMENT)) return goodEnd(step.batch)
      }
    } finally {
      this.close()
    }
    throw new UampError('cancelled', 'The answer was stopped')
  }

  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.#reader.close()
    void this.#session.release().catch((error: unknown) => this.#log('error', 'A session could not be let go', { error }))
  }

  /** Nobody waits for the answer any more when the request is gone. */
  #stopWith(call: KnownCall): void {
    if (this.#closed) return
    const { signal } = call
    if (signal.aborted) this.close()
    else signal.addEventListener('abort', () => this.close(), { once: true })
  }
}

function goodEnd(batch: Batch): EventOf<'response.done'> {
  for (const { event } of batch) {
    if (event.type === 'payment.required') throw paymentRefusal(event)
    if (event.type === 'response.done') return event
    if (event.type === 'response.error') throw toldError(event.error)
  }
  throw new UampError('cancelled', 'The answer was stopped')
}
