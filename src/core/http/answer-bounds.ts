import type { HttpRequest } from '../ports/http.ts'

/** The whole of an answer took too long, though something came all the time. */
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

/** The longest time that a timer of JavaScript can be set to; a longer one is over at once. */
const LONGEST_MS = 2 ** 31 - 1

/** The types ask for both, but an agent may be written in JavaScript: without them an answer would have no end. */
export function checkBounds({ maxBytes, timeouts }: HttpRequest): void {
  if (Number.isFinite(maxBytes) && timeouts?.totalMs > 0 && timeouts.totalMs <= LONGEST_MS) return
  throw new TypeError('A request needs "maxBytes" and "timeouts.totalMs", both of them finite')
}
