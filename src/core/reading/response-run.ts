import type { EventOf, ServerEvent } from '../../protocol/events.ts'
import type { Batch, Hold, Reader, Session } from '../ports/session.ts'
import type { Call, Frame, Host } from '../ports/transport.ts'
import { RESPONSE_ENDS, type EndEvent } from './response-fold.ts'
import { ResponseBatches, type Refused } from './response-batches.ts'

export interface RunOptions {
  readonly session: Session
  /** Its cursor is before the first event of the response. */
  readonly reader: Reader
  readonly response: string
  /** Cancel the response if its client leaves before the end. Otherwise the session's `onDetach` decides. */
  readonly cancels?: boolean
  /** False: the session outlives the request, and other code releases it. */
  readonly releases?: boolean
  /** The session was opened for this response. If the response is refused for want of payment, the session ends with it. */
  readonly fresh?: boolean
  /** Counts memory that this client's answer needs, until the run closes. */
  readonly hold?: Hold | undefined
}

const PAYMENT: ReadonlySet<string> = new Set(['payment.required'])
const LAST: ReadonlySet<string> = new Set([...RESPONSE_ENDS, ...PAYMENT])

/** Delivers one response to one client, from its first event until the client has everything or leaves. */
export class ResponseRun extends ResponseBatches {
  readonly response: string
  readonly #host: Pick<Host, 'newId' | 'log'>
  readonly #options: RunOptions
  #closed = false

  constructor(host: Pick<Host, 'newId' | 'log'>, options: RunOptions) {
    super(options.reader, options.response)
    this.response = options.response
    this.#host = host
    this.#options = options
  }

  /** Closes the run when the client leaves, which may be before its frames are ever read. */
  stopWith(call: Pick<Call, 'whenGone'>): void {
    if (!this.#closed) call.whenGone(() => this.close())
  }

  /** Ends a run whose client gets only the refusal. */
  async refuse({ type }: Pick<Refused, 'type'>): Promise<void> {
    this.over = true
    const { fresh, session } = this.#options
    if (fresh && type === 'payment.required') await session.end('payment_required')
    this.close()
  }

  /** Reads on and returns the event that ends the response, or asks for payment. Undefined: the log ended without one. */
  async end(): Promise<EndEvent | EventOf<'payment.required'> | undefined> {
    try {
      for (let batch = await this.take(); batch; batch = await this.take()) {
        if (this.over || batch.has(PAYMENT)) return endIn(batch)
      }
      return undefined
    } finally {
      this.close()
    }
  }

  /** The response as frames. The returned one is written in one piece with the end of the HTTP body. */
  async *frames(toFrame: (batch: Batch) => Frame): AsyncGenerator<Frame, Frame | undefined> {
    try {
      for (;;) {
        const batch = await this.take()
        if (!batch) return undefined
        const frame = toFrame(batch)
        if (this.over) return frame
        yield frame
      }
    } finally {
      this.close()
    }
  }

  /** The client has left or has everything. */
  close(): void {
    if (this.#closed) return
    this.#closed = true
    const { reader, session, response, cancels, releases = true, hold } = this.#options
    reader.close()
    hold?.close()
    if (cancels && !this.over) {
      // The response may have ended meanwhile.
      session.send({ type: 'response.cancel', event_id: this.#host.newId(), response_id: response }).catch(() => undefined)
    }
    if (!releases) session.leave()
    else
      session
        .release()
        .catch((error: unknown) => this.#host.log('error', 'A session could not be released', { session: session.id, error }))
  }
}

function endIn(batch: Batch): EndEvent | EventOf<'payment.required'> | undefined {
  let found: ServerEvent | undefined
  batch.pick(LAST, (event) => (found ??= event))
  return found as ReturnType<typeof endIn>
}
