import type { Principal } from '../core/ports/access.ts'
import type { Gateway, Hold } from '../core/ports/session.ts'
import { UampError } from '../protocol/errors.ts'
import type { Limits } from './limits.ts'

/** Input is counted from this size on, so that most requests and messages, which are smaller, pay nothing for it. */
export const COUNTED_BYTES = 16 * 1024
/** The least that a sender of counted input must bring in each `stallMs`. */
export const PACE_BYTES = 16 * 1024

/** The sender to a public route. */
export const NOBODY: Principal = { tenant: '', id: '', scopes: [] }

export interface BodiesOptions {
  readonly gateway: Pick<Gateway, 'hold'>
  readonly limits: Pick<Limits, 'stallMs'>
  readonly monotonic: () => number
}

/** Counts the bodies of requests for their senders, and cuts those that stop coming. */
export class Bodies {
  readonly #options: BodiesOptions
  readonly #bodies = new WeakMap<Request, Body>()

  constructor(options: BodiesOptions) {
    this.#options = options
  }

  /** The request with a body that fails when it is too long, too slow, or finds no room. */
  counted(request: Request, most: number): Request {
    if (request.body === null) return request
    const body = new Body(request.body, most, this.#options)
    // `duplex` is required with a stream, and missing in the DOM's types.
    const init: RequestInit & { duplex: 'half' } = { body: body.stream, duplex: 'half' }
    const counted = new Request(request, init)
    this.#bodies.set(counted, body)
    return counted
  }

  /** Names the owner of a body. Called before anybody reads it. */
  belongTo(principal: Principal, request: Request): Principal {
    const body = this.#bodies.get(request)
    if (body) body.principal = principal
    return principal
  }
}

class Body {
  principal = NOBODY
  readonly stream: ReadableStream<Uint8Array>
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>
  readonly #most: number
  readonly #options: BodiesOptions
  #hold: Hold | undefined
  #bytes = 0
  /** Bytes that came in the current `stallMs`, and the time that is left of it. */
  #gained = 0
  #leftMs: number

  constructor(body: ReadableStream<Uint8Array>, most: number, options: BodiesOptions) {
    this.#reader = body.getReader()
    this.#most = most
    this.#options = options
    this.#leftMs = options.limits.stallMs
    // Nothing is read ahead: the rest of the body stays in the network.
    const pull = (controller: ReadableStreamDefaultController<Uint8Array>) => this.#pull(controller)
    this.stream = new ReadableStream({ pull, cancel: (reason) => this.#cancel(reason) }, { highWaterMark: 0 })
  }

  async #pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    try {
      const { done, value } = await this.#next()
      if (done) {
        this.#hold?.close()
        controller.close()
        return
      }
      this.#count(value.byteLength)
      controller.enqueue(value)
    } catch (error) {
      this.#hold?.close()
      throw error
    }
  }

  #count(bytes: number): void {
    this.#bytes += bytes
    if (this.#bytes > this.#most) throw tooLarge(this.#most)
    if (this.#bytes > COUNTED_BYTES) (this.#hold ??= this.#options.gateway.hold(this.principal, 0)).grow(this.#bytes)
  }

  /** Counts only the time in which somebody waits for the sender. */
  async #next(): Promise<ReadableStreamReadResult<Uint8Array>> {
    if (!this.#hold) return this.#reader.read()
    const { limits, monotonic } = this.#options
    const since = monotonic()
    let timer: ReturnType<typeof setTimeout> | undefined
    const late = new Promise<never>((_, reject) => (timer = setTimeout(() => reject(new SlowBody()), this.#leftMs)))
    try {
      const result = await Promise.race([this.#reader.read(), late])
      this.#gained += result.value?.byteLength ?? 0
      this.#leftMs -= monotonic() - since
      if (this.#gained >= PACE_BYTES) {
        this.#gained = 0
        this.#leftMs = limits.stallMs
      }
      return result
    } finally {
      clearTimeout(timer)
    }
  }

  #cancel(reason: unknown): Promise<void> {
    this.#hold?.close()
    return this.#reader.cancel(reason)
  }
}

/** HTTP has a status of its own for a slow body. */
export class SlowBody extends UampError {
  readonly status = 408

  constructor() {
    super('timeout', 'The body comes too slowly')
  }
}

export function tooLarge(most: number): UampError {
  return new UampError('too_large', `A body may have at most ${most} bytes`, { details: { limit: most } })
}
