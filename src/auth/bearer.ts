import type { Credentials } from '../core/ports/access.ts'
import { fromBase64 } from '../protocol/base64.ts'

/**
 * Browsers cannot set headers on a WebSocket, so they offer the token as a second subprotocol beside the real one:
 * `new WebSocket(url, ['uamp', 'uamp.token.' + base64url(secret)])`. The server selects `uamp` and never echoes the token.
 */
const TOKEN_PROTOCOL = 'uamp.token.'

/** OpenAI Realtime does the same with the plain key: `new WebSocket(url, ['realtime', 'openai-insecure-api-key.' + key])`. */
const KEY_PROTOCOL = 'openai-insecure-api-key.'

/**
 * The token in the credentials; undefined if they have none. Credentials that cannot be read (another scheme, broken base64) give an
 * empty token, so that the caller is refused and not taken for anonymous.
 */
export function bearerToken({ token, headers, subprotocols }: Credentials): string | undefined {
  if (token !== undefined) return token
  const authorization = headers?.get('authorization')
  if (authorization != null) return /^bearer +(\S+) *$/i.exec(authorization)?.[1] ?? ''
  const offered = subprotocols?.find((name) => name.startsWith(TOKEN_PROTOCOL))
  if (offered !== undefined) return fromBase64Url(offered.slice(TOKEN_PROTOCOL.length))
  return subprotocols?.find((name) => name.startsWith(KEY_PROTOCOL))?.slice(KEY_PROTOCOL.length)
}

function fromBase64Url(text: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(fromBase64(text.replaceAll('-', '+').replaceAll('_', '/')))
  } catch {
    return ''
  }
}
