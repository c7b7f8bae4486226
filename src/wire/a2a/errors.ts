/** The errors of A2A: one table for every generation and binding, for the server and for the client. */
import type { ErrorCode } from '../../protocol/errors.ts'

export interface Kind {
  /** JSON-RPC. */
  readonly code: number
  /** REST of 1.0.1. */
  readonly status: number
  /** `google.rpc.Code`, by name. */
  readonly rpc: string
  readonly of: ErrorCode
}

/** By the `reason` of 1.0's ErrorInfo. A2A 1.0.1 §5.4, §9.5, §11.6. */
export const REASONS = {
  TASK_NOT_FOUND: { code: -32001, status: 404, rpc: 'NOT_FOUND', of: 'not_found' },
  TASK_NOT_CANCELABLE: { code: -32002, status: 400, rpc: 'FAILED_PRECONDITION', of: 'conflict' },
  PUSH_NOTIFICATION_NOT_SUPPORTED: { code: -32003, status: 400, rpc: 'FAILED_PRECONDITION', of: 'not_supported' },
  UNSUPPORTED_OPERATION: { code: -32004, status: 400, rpc: 'FAILED_PRECONDITION', of: 'not_supported' },
  CONTENT_TYPE_NOT_SUPPORTED: { code: -32005, status: 400, rpc: 'INVALID_ARGUMENT', of: 'invalid_request' },
  INVALID_AGENT_RESPONSE: { code: -32006, status: 500, rpc: 'INTERNAL', of: 'provider_error' },
  EXTENDED_AGENT_CARD_NOT_CONFIGURED: { code: -32007, status: 400, rpc: 'FAILED_PRECONDITION', of: 'not_supported' },
  EXTENSION_SUPPORT_REQUIRED: { code: -32008, status: 400, rpc: 'FAILED_PRECONDITION', of: 'not_supported' },
  VERSION_NOT_SUPPORTED: { code: -32009, status: 400, rpc: 'FAILED_PRECONDITION', of: 'version_mismatch' },
  PARSE_ERROR: { code: -32700, status: 400, rpc: 'INVALID_ARGUMENT', of: 'invalid_request' },
  INVALID_REQUEST: { code: -32600, status: 400, rpc: 'INVALID_ARGUMENT', of: 'invalid_request' },
  METHOD_NOT_FOUND: { code: -32601, status: 404, rpc: 'NOT_FOUND', of: 'not_found' },
  INVALID_PARAMS: { code: -32602, status: 400, rpc: 'INVALID_ARGUMENT', of: 'invalid_request' },
  INTERNAL: { code: -32603, status: 500, rpc: 'INTERNAL', of: 'internal' },
} as const satisfies Record<string, Kind>

export type Reason = keyof typeof REASONS
