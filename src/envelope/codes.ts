import { UampError, type ErrorCode } from '../protocol/errors.ts'

interface Meaning {
  readonly title: string
  readonly http: number
  /** google.rpc.Code */
  readonly grpc: number
  /** What a WebSocket is closed with. Undefined: it stays open. */
  readonly close?: number
  /** The same message may be sent again. */
  readonly retry: boolean
  readonly error: ErrorCode
}

/** Every code of an envelope (UAMP envelope §9), and what it is on each binding. The specification has five; the others follow their form. */
export const CODES = {
  '4.00': { title: 'Malformed', http: 400, grpc: 3, retry: false, error: 'invalid_request' },
  '4.01': { title: 'Unauthenticated', http: 401, grpc: 16, close: 1008, retry: false, error: 'unauthorized' },
  '4.02': { title: 'Payment required', http: 402, grpc: 9, retry: true, error: 'payment_required' },
  '4.03': { title: 'Unauthorized', http: 403, grpc: 7, close: 1008, retry: false, error: 'forbidden' },
  '4.04': { title: 'Not found', http: 404, grpc: 5, retry: false, error: 'not_found' },
  '4.05': { title: 'Not supported', http: 405, grpc: 12, retry: false, error: 'not_supported' },
  '4.08': { title: 'Timed out', http: 408, grpc: 4, retry: true, error: 'timeout' },
  '4.09': { title: 'Missing delta_seq', http: 409, grpc: 10, retry: true, error: 'conflict' },
  '4.10': { title: 'Gone', http: 410, grpc: 5, retry: false, error: 'cancelled' },
  '4.13': { title: 'Payload too large', http: 413, grpc: 8, close: 1009, retry: false, error: 'too_large' },
  '4.15': { title: 'Unsupported type', http: 415, grpc: 3, retry: false, error: 'not_supported' },
  '4.22': { title: 'Used for something else', http: 422, grpc: 6, retry: false, error: 'conflict' },
  '4.29': { title: 'Too many messages', http: 429, grpc: 8, retry: true, error: 'rate_limited' },
  '5.00': { title: 'Internal error', http: 500, grpc: 13, retry: false, error: 'internal' },
  '5.01': { title: 'Not implemented', http: 501, grpc: 12, retry: false, error: 'not_supported' },
  '5.04': { title: 'Backend busy', http: 503, grpc: 14, close: 1013, retry: true, error: 'overloaded' },
} as const satisfies Record<string, Meaning>

export type EnvelopeCode = keyof typeof CODES

/** The code for an error that names none itself. */
const BY_ERROR = {
  invalid_request: '4.00',
  unauthorized: '4.01',
  forbidden: '4.03',
  payment_required: '4.02',
  not_found: '4.04',
  agent_offline: '4.04',
  conflict: '4.09',
  response_in_progress: '5.04',
  version_mismatch: '4.00',
  too_large: '4.13',
  rate_limited: '4.29',
  timeout: '4.08',
  cancelled: '4.10',
  interrupted: '5.00',
  approval_unavailable: '4.05',
  tool_budget_exceeded: '5.00',
  not_supported: '4.05',
  provider_error: '5.00',
  overloaded: '5.04',
  internal: '5.00',
} satisfies Record<ErrorCode, EnvelopeCode>

/** An error with a code of its own. `reason` is for programs: `replayed`, `skew`, `evicted`. */
export function envelopeError(code: EnvelopeCode, message: string, reason?: string): UampError {
  return new UampError(CODES[code].error, message, { details: { code, ...(reason !== undefined && { reason }) } })
}

export function codeOf({ code, details }: Pick<UampError, 'code' | 'details'>): EnvelopeCode {
  const named = details?.['code']
  return typeof named === 'string' && Object.hasOwn(CODES, named) ? (named as EnvelopeCode) : BY_ERROR[code]
}
