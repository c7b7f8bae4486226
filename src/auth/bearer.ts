import type { Credentials } from '../core/ports/access.ts'

/**
 * Browsers cannot set headers on a WebSocket, so they offer the token as a second subprotocol beside the real one:
 * `new WebSocket(url, ['uamp', 'uamp.token.' + base64url(secret)])`. The server selects `uamp` and never echoes the token.
 */
const TOKEN_PROTOCOL = 'uamp.token.'

/** The same of OpenAI Realtime, where the key stands as it is: `new WebSocket(url, ['realtime', 'openai-insecure-api-key.' + key])`. */
const KEY_PROTOCOL = 'openai-insecure-api-key.'

/**
 * The token that the credentials carry; undefined when they carry none. Credentials that are there but that nobody can read
 * (another scheme, broken base64) give an empty token: they must be refused, and not be taken for "no credentials".
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
    const bytes = Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (char) => char.charCodeAt(0))
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return ''
  }
}
