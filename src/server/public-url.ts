import { UampError } from '../protocol/errors.ts'

export interface PublicUrlOptions {
  /** Where clients find this server: `https://example.com/prefix`. Default: as the request says. */
  readonly publicUrl?: string
  /**
   * Whether a proxy stands before this server, and what it says of the request is believed: `Forwarded`, else `X-Forwarded-Proto`,
   * `-Host` and `-Prefix`. Only where nobody can get past the proxy: else every client could say it.
   */
  readonly trustProxy?: boolean
}

const HOST = /^(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?$/
const PREFIX = /^(?:\/[A-Za-z0-9._~%-]+)+$/

/** Where the server is for whoever sent a request, without a slash at the end. */
export function publicUrl({ publicUrl: fixed, trustProxy = false }: PublicUrlOptions): (request: Request) => string {
  const url = fixed === undefined ? undefined : normalized(fixed)
  if (url !== undefined) return () => url
  return trustProxy ? ({ url, headers }) => forwarded(new URL(url), headers) : ({ url }) => new URL(url).origin
}

/** As whoever runs the server wrote it, without a slash at the end. */
export function normalized(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const usable = url && /^https?:$/.test(url.protocol) && url.search === '' && url.hash === '' && url.username === ''
  if (!usable) throw new UampError('invalid_request', `"${text}" is not where a server can be: write it like https://example.com`)
  return url.origin + url.pathname.replace(/\/+$/, '')
}

/** What the proxy says, as far as it makes sense: some send a placeholder that was never filled in. */
function forwarded(url: URL, headers: Headers): string {
  const standard = forwardedPairs(headers.get('forwarded'))
  const proto = (standard.get('proto') ?? first(headers, 'x-forwarded-proto'))?.toLowerCase()
  const host = standard.get('host') ?? first(headers, 'x-forwarded-host')
  const prefix = first(headers, 'x-forwarded-prefix')?.replace(/\/+$/, '')
  const scheme = proto === 'http' || proto === 'https' ? proto : url.protocol.slice(0, -1)
  const place = host !== undefined && HOST.test(host) ? host : url.host
  const origin = URL.canParse(`${scheme}://${place}`) ? new URL(`${scheme}://${place}`).origin : url.origin
  return origin + (prefix !== undefined && PREFIX.test(prefix) ? prefix : '')
}

/** Of several proxies the first in the list is the one that the client spoke to. */
function first(headers: Headers, name: string): string | undefined {
  return headers.get(name)?.split(',')[0]?.trim()
}

/** RFC 7239 §4: `for=192.0.2.60;proto=https;host="example.com:8443", for=…`. */
function forwardedPairs(header: string | null): ReadonlyMap<string, string> {
  const pairs = (header?.split(',')[0] ?? '').split(';').map((pair) => pair.split('='))
  return new Map(
    pairs.map(([name = '', ...value]) => [
      name.trim().toLowerCase(),
      value
        .join('=')
        .trim()
        .replace(/^"(.*)"$/, '$1'),
    ]),
  )
}
