import type { HttpRequest } from '../ports/http.ts'

/** The whole response took too long, although bytes kept coming. */
export class TookTooLong extends DOMException {
  constructor(ms: number) {
    super(`The answer took longer than ${ms} ms`, 'TimeoutError')
  }
}

export function tooManyBytes(maxBytes: number): DOMException {
  return new DOMException(`The answer has more than ${maxBytes} bytes`, 'QuotaExceededError')
}

export function isTooMuch(thrown: unknown): thrown is DOMException {
  return thrown instanceof DOMException && thrown.name === 'QuotaExceededError'
}

/** The longest timer in JavaScript; a longer one fires at once. */
const LONGEST_MS = 2 ** 31 - 1

/** The types require both bounds, but agents may be written in JavaScript: without bounds a response could go on forever. */
export function checkBounds({ maxBytes, timeouts }: HttpRequest): void {
  if (Number.isFinite(maxBytes) && timeouts?.totalMs > 0 && timeouts.totalMs <= LONGEST_MS) return
  throw new TypeError('A request needs "maxBytes" and "timeouts.totalMs", both of them finite')
}
