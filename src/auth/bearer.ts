import type { Credentials } from '../core/ports/access.ts'
import { fromBase64 } from '../protocol/base64.ts'

/**
 * Browsers cannot set headers on a WebSocket, so they offer the token as a second subprotocol beside the real one:
 * `new WebSocket(url, ['uamp', 'uamp.token.' + base64url(secret)])`. The server selects `uamp` and never echoes the token.
 */
const TOKEN_PROTOCOL = 'uamp.token.'

/** OpenAI Realtime does the same with the plain key: `new WebSocket(url, ['realtime', 'openai-insecure-api-key.' + key])`. */
const KEY_PROTOCOL = 'openai-insecure-api-key.'

/** A token, and how it came. */
export interface Presented {
  readonly token: string
  readonly scheme: 'Bearer' | 'DPoP' | 'message'
}

/**
 * The token in the credentials; undefined if they have none. Credentials that cannot be read (another scheme, broken base64) give an
 * empty token, so that the caller is refused and not taken for anonymous.
 */
export function presentedToken({ token, headers, subprotocols }: Credentials): Presented | undefined {
  if (token !== undefined) return { token, scheme: 'message' }
  const authorization = headers?.get('authorization')
  if (authorization != null) {
    const [, scheme, given = ''] = /^(bearer|dpop) +(\S+) *$/i.exec(authorization) ?? []
    return { token: given, scheme: scheme?.length === 4 ? 'DPoP' : 'Bearer' }
  }
  const offered = subprotocols?.find((name) => name.startsWith(TOKEN_PROTOCOL))
  if (offered !== undefined) return { token: fromBase64Url(offered.slice(TOKEN_PROTOCOL.length)), scheme: 'Bearer' }
  const key = subprotocols?.find((name) => name.startsWith(KEY_PROTOCOL))?.slice(KEY_PROTOCOL.length)
  return key === undefined ? undefined : { token: key, scheme: 'Bearer' }
}

/** The token of a scheme that needs nothing else; empty if it needs more. */
export function bearerToken(credentials: Credentials): string | undefined {
  const presented = presentedToken(credentials)
  return presented?.scheme === 'DPoP' ? '' : presented?.token
}

function fromBase64Url(text: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(fromBase64(text.replaceAll('-', '+').replaceAll('_', '/')))
  } catch {
    return ''
  }
}
