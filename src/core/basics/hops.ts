import { UampError } from '../../protocol/errors.ts'
import type { EventOf } from '../../protocol/events.ts'
import type { Attributes, Span, Trace, Work } from '../ports/trace.ts'

/** Says how often a request was passed on. Protocols that have no headers say it in a field of their own. */
export const HOPS_HEADER = 'uamp-hops'

/** The reason of the refusal. It is in the message, too, which is all that some protocols bring back. */
const TOO_MANY_HOPS = 'too_many_hops'

type Failed = EventOf<'response.error'>['error']

/** No limit is as high, and a larger number says no more. */
const MOST = 1_000_000

/** The hops that a header or a field names. Anything else than a count is none. A header that came twice counts by its highest. */
export function hopsIn(given: unknown): number {
  if (typeof given === 'string') {
    // Browsers and proxies join headers of one name by commas. A few are enough: a longer one is no count.
    return given.length > 64 ? 0 : Math.max(...given.split(',').map((each) => (/^\s*\d+\s*$/.test(each) ? counted(Number(each)) : 0)))
  }
  return typeof given === 'number' ? counted(given) : 0
}

function counted(number: number): number {
  return Number.isInteger(number) && number > 0 ? Math.min(number, MOST) : 0
}

/** The hops of a call that is made for this request. */
export function nextHops(trace: Trace | undefined): number {
  return (trace?.hops ?? 0) + 1
}

/** Throws if a request came through more servers than it may. */
export function checkHops({ hops }: Pick<Trace, 'hops'>, limit: number): void {
  if (hops > limit) throw tooManyHops(limit)
}

function tooManyHops(limit?: number): UampError {
  const count = limit === undefined ? 'too many servers' : `more than ${limit} servers`
  return new UampError(
    'invalid_request',
    `The request was passed on by ${count} (${TOO_MANY_HOPS}): do agents call each other in a circle?`,
    {
      details: { reason: TOO_MANY_HOPS, code: TOO_MANY_HOPS, ...(limit !== undefined && { limit }) },
    },
  )
}

/** An error that another server gave because of its hops, without what each server on the way back has added; otherwise the error itself. */
export function withoutHops(error: Failed): Failed {
  return error.message.includes(TOO_MANY_HOPS) && error.details?.['reason'] !== TOO_MANY_HOPS ? tooManyHops().toBody() : error
}

/** The same trace, with the hops that a field names, if these are more. A client cannot take back what the transport has counted. */
export function withHops(trace: Trace, given: unknown): Trace
export function withHops(trace: Trace | undefined, given: unknown): Trace | undefined
export function withHops(trace: Trace | undefined, given: unknown): Trace | undefined {
  const hops = hopsIn(given)
  return hops > (trace?.hops ?? 0) ? new Counted(trace ?? new Untraced(), hops) : trace
}

class Counted implements Trace {
  readonly hops: number
  readonly #trace: Trace

  constructor(trace: Trace, hops: number) {
    this.#trace = trace
    this.hops = hops
  }

  get requestId(): string {
    return this.#trace.requestId
  }

  get fields(): Readonly<Record<string, string>> {
    return this.#trace.fields
  }

  get headers(): Readonly<Record<string, string>> {
    return { ...this.#trace.headers, [HOPS_HEADER]: String(this.hops + 1) }
  }

  begin(work: Work, name: string, attributes?: Attributes): Span {
    return new CountedSpan(this.#trace.begin(work, name, attributes), this.hops)
  }
}

class CountedSpan extends Counted implements Span {
  readonly #span: Span

  constructor(span: Span, hops: number) {
    super(span, hops)
    this.#span = span
  }

  set(attributes: Attributes): void {
    this.#span.set(attributes)
  }

  run<T>(code: () => T): T {
    return this.#span.run(code)
  }

  end(error?: string): void {
    this.#span.end(error)
  }
}

/** For a program that is asked over its standard input, where nobody traces anything. */
class Untraced implements Span {
  readonly requestId = ''
  readonly hops = 0
  readonly fields = {}
  readonly headers = {}

  begin(): Span {
    return this
  }

  set(): void {}

  run<T>(code: () => T): T {
    return code()
  }

  end(): void {}
}
