import { UampError } from '../protocol/errors.ts'

const LOOPBACK_ORIGIN = /^https?:\/\/(localhost|127\.0\.0\.1|\[::1\])(:\d{1,5})?$/

export interface OriginOptions {
  /** Origins of web pages that may talk to this server; `*`: all of them. */
  readonly origins?: readonly string[]
  /** Whether the server listens on the loopback address only; then pages from this machine may talk to it. */
  readonly loopback: boolean
}

/**
 * Which web pages may call. Never decided by comparing `Origin` with `Host`: a page whose name was pointed at 127.0.0.1
 * (DNS rebinding) sends the two alike. `host-names.ts` stops such a page.
 */
export function originPolicy({ origins = [], loopback }: OriginOptions): (origin: string) => boolean {
  const all = origins.includes('*')
  const listed = new Set(origins.filter((origin) => origin !== '*').map(normalize))
  return (origin) => all || listed.has(origin) || (loopback && LOOPBACK_ORIGIN.test(origin))
}

/**
 * Whether a request may be answered, by what browsers say of the page that sent it. An image, a form or a link of another site
 * comes without `Origin`, but with `Sec-Fetch-Site: cross-site`.
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

/** What clients read of an answer: OpenAI's decide by some of them whether to try again. */
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

/** No `Access-Control-Allow-Credentials`: callers show tokens, cookies mean nothing here. */
export function corsHeaders(origin: string): Record<string, string> {
  return {
    'access-control-allow-origin': origin,
    'access-control-expose-headers': EXPOSED,
    vary: 'Origin',
  }
}

/** Whoever may call may send any header: clients have their own (`x-stainless-*`), and none of them means more than its value. */
export function preflightHeaders(origin: string, asked: string | null): Record<string, string> {
  return {
    ...corsHeaders(origin),
    'access-control-allow-methods': 'GET, POST, PUT, PATCH, DELETE',
    'access-control-allow-headers': asked ?? 'Authorization, Content-Type, Last-Event-ID, X-Session-ID',
    'access-control-max-age': '600',
  }
}
