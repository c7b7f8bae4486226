import type { RefusalOptions } from '../core/ports/transport.ts'
import type { ErrorCode, UampError } from '../protocol/errors.ts'

const STATUS = {
  invalid_request: 400,
  unauthorized: 401,
  payment_required: 402,
  forbidden: 403,
  not_found: 404,
  agent_offline: 404,
  conflict: 409,
  response_in_progress: 409,
  version_mismatch: 400,
  too_large: 413,
  rate_limited: 429,
  timeout: 504,
  cancelled: 499,
  interrupted: 503,
  approval_unavailable: 409,
  tool_budget_exceeded: 500,
  not_supported: 501,
  provider_error: 502,
  overloaded: 503,
  internal: 500,
} satisfies Record<ErrorCode, number>

/** Every error of this server looks like this: `{ "error": { "code", "message", "details"? } }`. */
export function errorResponse(error: UampError, { status = STATUS[error.code], headers }: RefusalOptions = {}): Response {
  const wait = error.details?.['retry_after']
  return new Response(JSON.stringify({ error: error.toBody() }), {
    status,
    headers: {
      'content-type': 'application/json',
      ...(error.code === 'unauthorized' && { 'www-authenticate': 'Bearer' }),
      ...(typeof wait === 'number' && { 'retry-after': String(Math.ceil(wait)) }),
      ...headers,
    },
  })
}
