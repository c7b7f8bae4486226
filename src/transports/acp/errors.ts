import type { RefusalOptions } from '../../core/ports/transport.ts'
import { UampError, type ErrorCode } from '../../protocol/errors.ts'
import type { EventOf } from '../../protocol/events.ts'
import { errorText, RPC, RpcError } from '../../wire/json-rpc.ts'
import { refusalResponse } from '../../wire/refusal.ts'

/** ACP, Error: its own codes beside those of JSON-RPC. -32402 is from UAMP transports (Payment handling, ACP). */
const CODES = {
  invalid_request: RPC.invalidParams,
  unauthorized: -32000,
  payment_required: -32402,
  forbidden: -32003,
  not_found: -32002,
  agent_offline: -32002,
  conflict: RPC.invalidRequest,
  response_in_progress: RPC.invalidRequest,
  version_mismatch: RPC.invalidRequest,
  too_large: RPC.invalidRequest,
  rate_limited: -32005,
  timeout: -32004,
  cancelled: -32800,
  interrupted: RPC.internal,
  approval_unavailable: RPC.internal,
  tool_budget_exceeded: RPC.internal,
  not_supported: RPC.internal,
  provider_error: RPC.internal,
  overloaded: -32005,
  internal: RPC.internal,
} satisfies Record<ErrorCode, number>

/** An error as clients see it. */
export function told(thrown: unknown): RpcError {
  return thrown instanceof RpcError ? thrown : toldBody(UampError.from(thrown))
}

/** The same for the error of a response. Its code may be an agent's own. */
export function toldBody({ code, message, details }: EventOf<'response.error'>['error']): RpcError {
  return new RpcError(Object.hasOwn(CODES, code) ? CODES[code as ErrorCode] : RPC.internal, message, { code, ...details })
}

/** Refuses an HTTP request that did not get as far as a message. */
export function refusal(error: UampError, options?: RefusalOptions): Response {
  return refusalResponse(error, errorText(null, told(error)), options)
}
