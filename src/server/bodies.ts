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

/** Counts a body while it comes in. */
export interface BodyCount {
  /** The body is large enough to use memory that others need, so its sender must not stop. */
  readonly isHeld: boolean
  /** How long the sender of such a body may take for `PACE_BYTES`. */
  readonly stallMs: number
  /** How many bytes are still to come; `Infinity` if the request does not say. */
  readonly rest: number
  /** Throws if the body is too long, or finds no room. */
  add(bytes: number): void
  /** The body is complete, or nobody waits for it any more. */
  close(): void
}

/** How a runtime has bodies. `env` is what it passes to `app.fetch`. */
export interface BodySource {
  /** Reads a whole body, faster than the web stream of its request does. Undefined: it cannot read this one. */
  text(env: unknown, count: BodyCount): Promise<string> | undefined
  /** Calls `then` when the request has been answered, or its client has left. */
  whenOver(env: unknown, then: () => void): void
}

export interface BodiesOptions {
  readonly gateway: Pick<Gateway, 'hold'>
  readonly limits: Pick<Limits, 'stallMs'>
  readonly monotonic: () => number
  /** Default: bodies are only read as web streams. */
  readonly source?: BodySource | undefined
}

interface Asked {
  /** The most bytes that the body may have. */
  readonly most: number
  /** How many it has, if the request says so. */
  readonly length: number | undefined
  /** Only `Bodies.text` reads it. */
  readonly asText: boolean
  readonly env: unknown
}

/** Counts the bodies of requests for their senders, and cuts those that stop coming. */
export class Bodies {
  readonly #options: BodiesOptions
  readonly #counts = new WeakMap<Request, Count>()

  constructor(options: BodiesOptions) {
    this.#options = options
  }

  /** The request with a body that fails when it is too long, too slow, or finds no room. */
  counted(request: Request, { most, length, asText, env }: Asked): Request {
    const { source, monotonic } = this.#options
    const count = new Count({ most, rest: length ?? Infinity }, this.#options)
    if (asText && source) {
      count.isDirect = true
      this.#counts.set(request, count)
      return request
    }
    if (request.body === null) return request
    // `duplex` is required with a stream, and missing in the DOM's types.
    const init: RequestInit & { duplex: 'half' } = { body: countedStream(request.body, count, monotonic), duplex: 'half' }
    const counted = new Request(request, init)
    this.#counts.set(counted, count)
    // Whoever reads the body may stop before its end.
    source?.whenOver(env, () => count.close())
    return counted
  }

  /** Names the owner of a body. Called before anybody reads it. */
  belongTo(principal: Principal, request: Request): Principal {
    const count = this.#counts.get(request)
    if (count) count.principal = principal
    return principal
  }

  text(request: Request, env: unknown): Promise<string> {
    const count = this.#counts.get(request)
    return (count?.isDirect && this.#options.source?.text(env, count)) || request.text()
  }
}

class Count implements BodyCount {
  principal = NOBODY
  /** The body is not read through the request. */
  isDirect = false
  readonly stallMs: number
  rest: number
  readonly #most: number
  readonly #gateway: BodiesOptions['gateway']
  #hold: Hold | undefined
  #bytes = 0

  constructor({ most, rest }: { readonly most: number; readonly rest: number }, { gateway, limits }: BodiesOptions) {
    this.#most = most
    this.rest = rest
    this.#gateway = gateway
    this.stallMs = limits.stallMs
  }

  get isHeld(): boolean {
    return this.#hold !== undefined
  }

  add(bytes: number): void {
    this.#bytes += bytes
    this.rest -= bytes
    if (this.#bytes > this.#most) throw tooLarge(this.#most)
    if (this.#bytes > COUNTED_BYTES) (this.#hold ??= this.#gateway.hold(this.principal, 0)).grow(this.#bytes)
  }

  close(): void {
    this.#hold?.close()
  }
}

/** The body as a stream that is counted while it is read. Nothing is read ahead: the rest of the body stays in the network. */
function countedStream(body: ReadableStream<Uint8Array>, count: Count, monotonic: () => number): ReadableStream<Uint8Array> {
  const reader = body.getReader()
  /** Bytes that came in the current `stallMs`, and the time that is left of it. */
  let gained = 0
  let leftMs = count.stallMs

  /** Counts only the time in which somebody waits for the sender. */
  const next = async (): Promise<ReadableStreamReadResult<Uint8Array>> => {
    if (!count.isHeld) return reader.read()
    const since = monotonic()
    let timer: ReturnType<typeof setTimeout> | undefined
    const late = new Promise<never>((_, reject) => (timer = setTimeout(() => reject(new SlowBody()), leftMs)))
    try {
      const result = await Promise.race([reader.read(), late])
      gained += result.value?.byteLength ?? 0
      leftMs -= monotonic() - since
      if (gained >= PACE_BYTES) {
        gained = 0
        leftMs = count.stallMs
      }
      return result
    } finally {
      clearTimeout(timer)
    }
  }
  const pull = async (controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> => {
    try {
      const { done, value } = await next()
      if (!done) {
        count.add(value.byteLength)
        controller.enqueue(value)
        return
      }
      count.close()
      controller.close()
    } catch (error) {
      count.close()
      throw error
    }
  }
  const cancel = (reason: unknown): Promise<void> => {
    count.close()
    return reader.cancel(reason)
  }
  return new ReadableStream({ pull, cancel }, { highWaterMark: 0 })
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
