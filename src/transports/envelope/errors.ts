import { codeOf, CODES } from '../../envelope/codes.ts'
import type { RefusalOptions } from '../../core/ports/transport.ts'
import type { UampError } from '../../protocol/errors.ts'
import { refusalResponse } from '../../wire/refusal.ts'

/** Seconds after which a busy server is tried again, unless the error says so. */
const RETRY_SECONDS = 1

/** An error as the payload of a frame, and as the body of a refusal (UAMP envelope §9). */
export function problemOf(error: UampError) {
  const code = codeOf(error)
  const { title, retry } = CODES[code]
  const { reason, retry_after: wait = code === '5.04' ? RETRY_SECONDS : undefined, accepts, ...rest } = error.details ?? {}
  const { oldest, newest } = rest
  return {
    code,
    title,
    detail: error.message,
    retry,
    ...(typeof wait === 'number' && { retry_after_ms: Math.ceil(wait * 1000) }),
    ...(reason !== undefined && { reason }),
    ...(oldest !== undefined && { oldest }),
    ...(newest !== undefined && { newest }),
    ...(accepts !== undefined && { accepts }),
  }
}

export function refusal(error: UampError, { status, headers }: RefusalOptions = {}): Response {
  const problem = problemOf(error)
  const { http } = CODES[problem.code]
  const wait = problem.retry_after_ms
  return refusalResponse(error, JSON.stringify(problem), {
    status: status ?? http,
    headers: {
      'content-type': 'application/problem+json',
      ...(wait !== undefined && { 'retry-after': String(Math.ceil(wait / 1000)) }),
      ...headers,
    },
  })
}
