import type { RefusalOptions } from '../../core/ports/transport.ts'
import { UampError, type ErrorCode } from '../../protocol/errors.ts'
import { refusalResponse } from '../../wire/refusal.ts'

/** The errors of a token endpoint (RFC 6749 §5.2, RFC 8707 §2). */
type OAuthCode =
  | 'invalid_request'
  | 'invalid_client'
  | 'unauthorized_client'
  | 'unsupported_grant_type'
  | 'invalid_scope'
  | 'invalid_target'
  | 'unsupported_token_type'

/** RFC 6749 §5.1 and §5.2: nobody keeps a token, nor why there was none. */
export const UNCACHED = { 'cache-control': 'no-store', pragma: 'no-cache' }

/** A refusal. `message` never repeats a secret or a token. */
export function refused(error: OAuthCode, message: string): UampError {
  if (error !== 'invalid_client') return new UampError('invalid_request', message, { details: { error } })
  return new UampError('unauthorized', message, { details: { error, challenge: 'Basic realm="uamp"' } })
}

/** What OAuth calls errors that are not its own. */
const OTHERS: Partial<Record<ErrorCode, string>> = {
  unauthorized: 'invalid_client',
  forbidden: 'unauthorized_client',
  rate_limited: 'temporarily_unavailable',
  overloaded: 'temporarily_unavailable',
  internal: 'server_error',
  timeout: 'temporarily_unavailable',
}

/** The form of RFC 6749 §5.2. */
export function oauthRefusal(error: UampError, { status, headers }: RefusalOptions = {}): Response {
  const { error: named } = error.details ?? {}
  const code = typeof named === 'string' ? named : (OTHERS[error.code] ?? 'invalid_request')
  const body = JSON.stringify({ error: code, error_description: described(error.message) })
  return refusalResponse(error, body, { status, headers: { ...UNCACHED, ...headers } })
}

/** The characters that a description may have. */
function described(message: string): string {
  return message.replaceAll(/["`\\]/g, "'").replaceAll(/[^ -~]/g, '?')
}
