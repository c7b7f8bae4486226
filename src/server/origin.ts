import { UampError } from '../protocol/errors.ts'

const LOOPBACK_ORIGIN = /^https?:\/\/(localhost|127\.0\.0\.1|\[::1\])(:\d{1,5})?$/

export interface OriginOptions {
  /** Origins of web pages that may call this server; `*`: all. */
  readonly origins?: readonly string[]
  /** True if the server listens on the loopback address only. Then pages of this machine may call it. */
  readonly loopback: boolean
}

/**
 * Decides which web pages may call. It never compares `Origin` with `Host`: they are the same for a page whose name points at 127.0.0.1
 * (DNS rebinding). `host-names.ts` stops such a page.
 */
export function originPolicy({ origins = [], loopback }: OriginOptions): (origin: string) => boolean {
  const all = origins.includes('*')
  const listed = new Set(origins.filter((origin) => origin !== '*').map(normalize))
  return (origin) => all || listed.has(origin) || (loopback && LOOPBACK_ORIGIN.test(origin))
}

/**
 * Decides by the headers of browsers whether a page may send a request. An image, a form or a link of another site comes without
 * `Origin`, but with `Sec-Fetch-Site: cross-site`.
 */
export function pagePolicy(options: OriginOptions): (headers: Headers) => boolean {
  const allows = originPolicy(options)
  const all = options.origins?.includes('*') === true
  return (headers) => {
    const origin = headers.get('origin')
    return origin === null ? all || headers.get('sec-fetch-site') !== 'cross-site' : allows(origin)
  }
}

function normalize(origin: string): string {
  const url = URL.canParse(origin) ? new URL(origin).origin : 'null'
  if (url === 'null') throw new UampError('invalid_request', `"${origin}" is not an origin: write it like https://example.com`)
  return url
}

/** Headers of answers that pages may read. OpenAI's clients decide by some of them whether to retry. */
const EXPOSED = [
  'X-Session-ID',
  'X-Session-Head',
  'X-Request-ID',
  'Retry-After',
  'Retry-After-Ms',
  'X-Should-Retry',
  'X-RateLimit-Limit-Requests',
  'X-RateLimit-Remaining-Requests',
  'X-RateLimit-Reset-Requests',
].join(', ')

/** Without `Access-Control-Allow-Credentials`: callers show tokens, and cookies mean nothing here. */
export function corsHeaders(origin: string): Record<string, string> {
  return {
    'access-control-allow-origin': origin,
    'access-control-expose-headers': EXPOSED,
    vary: 'Origin',
  }
}

/** Allows any header: clients have their own (`x-stainless-*`), and none of them gives more rights. */
export function preflightHeaders(origin: string, asked: string | null): Record<string, string> {
  return {
    ...corsHeaders(origin),
    'access-control-allow-methods': 'GET, POST, PUT, PATCH, DELETE',
    'access-control-allow-headers': asked ?? 'Authorization, Content-Type, Last-Event-ID, X-Session-ID',
    'access-control-max-age': '600',
  }
}
