import type { EventOf, ServerEvent } from '../../protocol/events.ts'
import type { Batch, Reader, Session } from '../ports/session.ts'
import type { Frame, Host } from '../ports/transport.ts'
import { RESPONSE_ENDS, type EndEvent } from './ends.ts'
import { ResponseBatches, type Refused } from './response-batches.ts'

export interface RunOptions {
  readonly session: Session
  /** Stands before the first event of the response. */
  readonly reader: Reader
  readonly response: string
  /** The response is cancelled when its client leaves before the end. Without this, the session's `onDetach` decides. */
  readonly cancels?: boolean
  /** False: the session outlives the request, and somebody else lets go of it. */
  readonly releases?: boolean
  /** The session was opened for this response. If nobody pays for it, nobody was told of the session, and it ends. */
  readonly fresh?: boolean
}

const PAYMENT: ReadonlySet<string> = new Set(['payment.required'])
const LAST: ReadonlySet<string> = new Set([...RESPONSE_ENDS, ...PAYMENT])

/** One response on its way to one client, from its first event until the client has everything or leaves. */
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

  /** A client may leave before anything is written, and then nobody ever reads the frames. */
  stopWith(call: { readonly signal: AbortSignal }): void {
    // To ask for the signal of a call makes one.
    if (this.#closed) return
    if (call.signal.aborted) this.close()
    else call.signal.addEventListener('abort', () => this.close(), { once: true })
  }

  /** Its client is told that it was refused, and nothing else of it. */
  async refuse({ type }: Pick<Refused, 'type'>): Promise<void> {
    this.over = true
    const { fresh, session } = this.#options
    if (fresh && type === 'payment.required') await session.end('payment_required')
    this.close()
  }

  /** Reads to the end without looking at what is in between. Undefined: there was none. */
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

  /** The response as frames. The one that is returned belongs into one write with the end of the answer. */
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

  /** Its client is gone, or has everything. */
  close(): void {
    if (this.#closed) return
    this.#closed = true
    const { reader, session, response, cancels, releases = true } = this.#options
    reader.close()
    if (cancels && !this.over) {
      // It may have ended in between.
      session.send({ type: 'response.cancel', event_id: this.#host.newId(), response_id: response }).catch(() => undefined)
    }
    if (!releases) return
    session.release().catch((error: unknown) => this.#host.log('error', 'A session could not be let go', { session: session.id, error }))
  }
}

function endIn(batch: Batch): EndEvent | EventOf<'payment.required'> | undefined {
  let found: ServerEvent | undefined
  batch.pick(LAST, (event) => (found ??= event))
  return found as ReturnType<typeof endIn>
}
