/** What keeps web pages of others away: the names that the server answers to, and the origins whose pages may call it. */
import { UampError } from '../protocol/errors.ts'

export interface HostOptions {
  /** Names that the server answers to, beside loopback names, addresses and the name in `publicUrl`. `*`: any name. */
  readonly allowedHosts?: readonly string[]
  readonly publicUrl?: string
}

interface RefusedHost {
  readonly error: UampError
  readonly status: number
}

/** Checks the `Host` of a request, and the host of its URL, because an absolute target names its own (RFC 9112 §3.2.2). */
export type HostPolicy = (url: string, host: string | null) => RefusedHost | undefined

/** A name, an IPv4 address, or an IPv6 address in brackets; but not a list: two `Host` headers are an error (RFC 9112 §3.2). */
const HOST = /^(?:([a-z\d_](?:[a-z\d_.-]*[a-z\d_.])?)|\[[\da-f:.]+\])(?::\d{0,5})?$/i
const LOOPBACK_NAME = /^(?:.+\.)?localhost$/
const IPV4 = /^(?:\d{1,3}\.){3}\d{1,3}$/

/**
 * Decides which names the server answers to. A web page can point its own name at this machine (DNS rebinding), and then the browser
 * takes our answers for the page's. Such requests still carry that name. Addresses pass, because health probes use them, and no page
 * has one for a name.
 */
export function hostPolicy({ allowedHosts = [], publicUrl }: HostOptions): HostPolicy {
  const any = allowedHosts.includes('*')
  const names = new Set(allowedHosts.filter((name) => name !== '*').map(configured))
  if (publicUrl !== undefined && URL.canParse(publicUrl)) names.add(plain(new URL(publicUrl).hostname))

  const judge = (host: string): RefusedHost | undefined => {
    const parsed = HOST.exec(host)
    if (!parsed) return { error: new UampError('invalid_request', 'The request names no host, or more than one'), status: 400 }
    const name = plain(parsed[1] ?? '')
    // Empty: an IPv6 address.
    if (name === '' || any || names.has(name) || LOOPBACK_NAME.test(name) || IPV4.test(name)) return undefined
    const message = `This server does not answer to the name "${name.slice(0, 253)}". If it should, add the name to allowedHosts, or set publicUrl to the address that clients use`
    return { error: new UampError('forbidden', message), status: 421 }
  }

  // Nearly all requests carry the same name as the last one.
  let good = ''
  const check = (host: string): RefusedHost | undefined => {
    if (host === good) return undefined
    const refused = judge(host)
    if (!refused) good = host
    return refused
  }

  return (url, host) => {
    const asked = authorityOf(url)
    return (host === null ? undefined : check(host)) ?? (asked === host ? undefined : check(asked))
  }
}

/** `example.com:8787` of `http://example.com:8787/path`. `new URL` costs more than the check. */
function authorityOf(url: string): string {
  const start = url.indexOf('://') + 3
  const end = url.indexOf('/', start)
  return end < 0 ? url.slice(start) : url.slice(start, end)
}

/** Without the dot that ends a full name. */
function plain(name: string): string {
  return name.toLowerCase().replace(/\.$/, '')
}

/** The name as a browser writes it, so that `bücher.example` matches. */
function configured(name: string): string {
  const url = `http://${name}`
  const { hostname, href } = URL.canParse(url) ? new URL(url) : { hostname: '', href: '' }
  if (hostname === '' || href !== `http://${hostname}/` || name.includes('/')) {
    throw new UampError('invalid_request', `"${name}" is not the name of a host: write it like agents.example.com, without scheme and port`)
  }
  return plain(hostname)
}

const LOOPBACK_ORIGIN = /^https?:\/\/(localhost|127\.0\.0\.1|\[::1\])(:\d{1,5})?$/

export interface OriginOptions {
  /** Origins of web pages that may call this server; `*`: all. */
  readonly origins?: readonly string[]
  /** True if the server listens on the loopback address only. Then pages of this machine may call it. */
  readonly loopback: boolean
}

/**
 * Decides which web pages may call. It never compares `Origin` with `Host`: they are the same for a page whose name points at 127.0.0.1
 * (DNS rebinding). `hostPolicy` stops such a page.
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
  // Where the answer to an envelope comes.
  'Location',
  'X-Session-ID',
  'X-Session-Head',
  'X-Request-ID',
  // Why a token was refused, and what the next proof must have (RFC 9449 §8).
  'WWW-Authenticate',
  'DPoP-Nonce',
  'Retry-After',
  'Retry-After-Ms',
  'X-Should-Retry',
  'RateLimit-Limit',
  'RateLimit-Remaining',
  'RateLimit-Reset',
  'X-RateLimit-Limit-Requests',
  'X-RateLimit-Remaining-Requests',
  'X-RateLimit-Reset-Requests',
  // What has to be paid, and what was (x402 of both versions).
  'PAYMENT-REQUIRED',
  'PAYMENT-RESPONSE',
  'X-PAYMENT-RESPONSE',
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
