import type { Frame, Host } from '../../core/ports/transport.ts'
import { ResponseBatches } from '../../core/response-batches.ts'
import type { EventOf } from '../../protocol/events.ts'
import { RunEncoder, type EncoderOptions } from './encoder.ts'
import type { Wire } from './events.ts'
import type { Started } from './start.ts'

/** One run as it is told to one client. */
export class Run {
  readonly started: Started
  readonly #host: Host
  /** The response stops when its client is gone before the end. */
  readonly #cancels: boolean
  readonly #batches: ResponseBatches
  #closed = false

  constructor(host: Host, started: Started, { cancels, signal }: { readonly cancels: boolean; readonly signal: AbortSignal }) {
    this.#host = host
    this.started = started
    this.#cancels = cancels
    this.#batches = new ResponseBatches(started.reader)
    // A client may leave before anything is written, and then nobody ever reads the frames.
    if (signal.aborted) this.close()
    else signal.addEventListener('abort', () => this.close(), { once: true })
  }

  /** Waits for the first word. Gives what has to be paid first, where that is it. */
  async begin(): Promise<EventOf<'payment.required'> | undefined> {
    const refused = await this.#batches.preflight()
    return refused?.type === 'payment.required' ? refused : undefined
  }

  /** Waits until its session can be answered: where a question ends the response, for that. */
  async asked(): Promise<void> {
    while (!this.started.session.duplex && (await this.#batches.take()));
    this.#batches.over = true
    this.close()
  }

  /** The events of the run. What is returned belongs into one write with the end. */
  async *frames(wire: Wire, options: EncoderOptions = {}): AsyncGenerator<Frame, Frame | undefined> {
    const { plan, snapshots, session } = this.started
    const encoder = new RunEncoder(plan, { snapshots, ...options })
    try {
      for (;;) {
        const batch = await this.#batches.take()
        if (!batch) return undefined
        const frame = wire.frame((out) => encoder.read(batch, out))
        // Where a question ends the run but not its response, that shows only in what is written.
        const shown = session.duplex ? written(frame) : frame
        this.#batches.over ||= encoder.ended
        if (this.#batches.over) return shown
        yield shown
      }
    } finally {
      this.close()
    }
  }

  /** Its client is gone, or has everything. */
  close(): void {
    if (this.#closed) return
    this.#closed = true
    const { reader, session, plan } = this.started
    reader.close()
    if (!this.#batches.over && this.#cancels) {
      const cancel = { type: 'response.cancel', event_id: this.#host.newId(), response_id: plan.response } as const
      // It may have ended in between.
      session.send(cancel).catch(() => undefined)
    }
    session.release().catch((error: unknown) => this.#host.log('error', 'A session could not be let go', { session: session.id, error }))
  }
}

function written(frame: Frame): Frame {
  if (typeof frame === 'string' || frame instanceof Uint8Array) return frame
  let text = ''
  frame.eachText((piece) => (text += piece))
  return text
}
