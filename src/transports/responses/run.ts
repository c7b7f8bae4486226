import type { Batch, Session } from '../../core/ports/session.ts'
import type { Frame, Host } from '../../core/ports/transport.ts'
import { ResponseBatches } from '../../core/response-batches.ts'
import { UampError } from '../../protocol/errors.ts'
import type { EventOf } from '../../protocol/events.ts'
import { toldError } from '../../wire/openai/errors.ts'
import { paymentRefusal } from '../../wire/payment.ts'
import { Answer } from './answer.ts'
import type { Started } from './start.ts'
import type { Wire } from './wire.ts'

const CREATED: ReadonlySet<string> = new Set(['response.created'])

/** One response of a request, from its first event to its end. */
export class Run {
  readonly #host: Host
  readonly #started: Started
  readonly #batches: ResponseBatches
  #id: string | undefined

  constructor(host: Host, started: Started) {
    this.#host = host
    this.#started = started
    this.#batches = new ResponseBatches(started.reader)
  }

  /** Waits for the first word. Throws what is refused before it. */
  async begin(): Promise<void> {
    const refused = await this.#batches.preflight()
    if (!refused) return
    this.#batches.over = true
    if (refused.type === 'response.error') throw toldError(refused.error)
    await this.#unpaid()
    throw paymentRefusal(refused)
  }

  /** The answer as it is after the first step of the agent. What comes later is not waited for. */
  async first(): Promise<Answer> {
    const answer = await this.#answer()
    const batch = await this.#batches.take()
    if (batch) answer.read(batch)
    this.close()
    return answer
  }

  /** The whole answer. Throws if it is none. */
  async whole(): Promise<Answer> {
    try {
      const answer = await this.#answer()
      for (let batch = await this.#batches.take(); batch && !answer.ended; batch = await this.#batches.take()) answer.read(batch)
      const failure = answer.ended ? answer.failure : new UampError('cancelled', 'The answer was stopped')
      if (!failure) return answer
      if (failure.code === 'payment_required') await this.#unpaid()
      throw failure
    } finally {
      this.close()
    }
  }

  /** The events of the answer. What is returned belongs into one write with the end. */
  async *frames(wire: Wire): AsyncGenerator<Frame, Frame | undefined> {
    try {
      const answer = await this.#answer(wire)
      for (;;) {
        const batch = await this.#batches.take()
        if (!batch) return undefined
        // Made when they are written, so that no text is kept.
        const texts: Frame = {
          eachText: (visit) => {
            wire.to(visit)
            answer.read(batch)
          },
        }
        if (this.#batches.over) return texts
        yield texts
      }
    } finally {
      this.close()
    }
  }

  /** Its client is gone, or has everything. Unless it runs in the background it stops. */
  close(): void {
    const { session, reader, background } = this.#started
    reader.close()
    if (background) return
    if (!this.#batches.over) void session.send(this.#cancel()).catch(() => undefined)
    void this.#release(session)
  }

  /** Nobody was told the id of a response that was refused for want of money: the client asks anew, and it is run anew. */
  async #unpaid(): Promise<void> {
    const { reader, session, fresh } = this.#started
    reader.close()
    if (fresh) await session.end('payment_required')
  }

  /** By its id, where that is known: in the meantime another request may have begun one here. */
  #cancel(): EventOf<'response.cancel'> {
    const named = this.#id !== undefined && { response_id: this.#id }
    return { type: 'response.cancel', event_id: this.#host.newId(), ...named }
  }

  async #release(session: Session): Promise<void> {
    await session
      .release()
      .catch((error: unknown) => this.#host.log('error', 'A session could not be let go', { session: session.id, error }))
  }

  async #answer(wire?: Wire): Promise<Answer> {
    const { held } = this.#batches
    while (!held.some((batch) => batch.has(CREATED))) {
      if (!(await this.#batches.ahead())) throw new UampError('cancelled', 'The answer was stopped')
    }
    const { agent, config } = this.#started
    this.#id = idIn(held)
    return new Answer({ id: this.#id, agent, config, endedAt: this.#host.now }, wire)
  }
}

function idIn(batches: readonly Batch[]): string {
  for (const batch of batches) for (const { event } of batch) if (event.type === 'response.created') return event.response_id
  throw new UampError('internal', 'There is no response')
}
