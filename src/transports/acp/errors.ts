import type { RefusalOptions } from '../../core/ports/transport.ts'
import { UampError, type ErrorCode } from '../../protocol/errors.ts'
import { errorText, RPC, RpcError } from '../../wire/json-rpc.ts'

/** ACP, Error: beside those of JSON-RPC it has three of its own. -32402 is UAMP transports' (Payment handling, ACP). */
const CODES = {
  invalid_request: [RPC.invalidParams, 400],
  unauthorized: [-32000, 401],
  payment_required: [-32402, 402],
  forbidden: [-32003, 403],
  not_found: [-32002, 404],
  agent_offline: [-32002, 404],
  conflict: [RPC.invalidRequest, 409],
  response_in_progress: [RPC.invalidRequest, 409],
  version_mismatch: [RPC.invalidRequest, 400],
  too_large: [RPC.invalidRequest, 413],
  rate_limited: [-32005, 429],
  timeout: [-32004, 504],
  cancelled: [-32800, 499],
  interrupted: [RPC.internal, 503],
  approval_unavailable: [RPC.internal, 409],
  tool_budget_exceeded: [RPC.internal, 500],
  not_supported: [RPC.internal, 501],
  provider_error: [RPC.internal, 502],
  overloaded: [-32005, 503],
  internal: [RPC.internal, 500],
} satisfies Record<ErrorCode, readonly [code: number, status: number]>

/** What the outside is told of an error. */
export function told(thrown: unknown): RpcError {
  if (thrown instanceof RpcError) return thrown
  const { code, message, details } = UampError.from(thrown)
  return new RpcError(CODES[code][0], message, { code, ...details })
}

/** The same for an error that a session tells. Its code may be an agent's own. */
export function toldBody({
  code,
  message,
  details,
}: {
  code: string
  message: string
  details?: Record<string, unknown> | undefined
}): RpcError {
  const known = Object.hasOwn(CODES, code) ? CODES[code as ErrorCode][0] : RPC.internal
  return new RpcError(known, message, { code, ...details })
}

/** How it says no over HTTP to what is refused before it is a message. */
export function refusal(error: UampError, { status, headers }: RefusalOptions = {}): Response {
  const wait = error.details?.['retry_after']
  return new Response(errorText(null, told(error)), {
    status: status ?? CODES[error.code][1],
    headers: {
      'content-type': 'application/json',
      ...(error.code === 'unauthorized' && { 'www-authenticate': 'Bearer' }),
      ...(typeof wait === 'number' && { 'retry-after': String(Math.ceil(wait)) }),
      ...headers,
    },
  })
}
