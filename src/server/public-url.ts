import { UampError } from '../protocol/errors.ts'
import { forwarded, type Trusts } from './forwarded.ts'

export interface PublicUrlOptions {
  /** The server's address for clients: `https://example.com/prefix`. Default: the address of the request. */
  readonly publicUrl?: string
  /**
   * True for addresses of proxies in front of this server, whose `Forwarded`, `X-Forwarded-For`, `-Proto`, `-Host` and `-Prefix` count.
   * Default: none.
   */
  readonly trusts?: Trusts
  /** The path that the server is mounted under: `/ai`. It counts where `publicUrl` does not say the whole address. */
  readonly prefix?: string
}

const HOST = /^(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?$/
const PREFIX = /^(?:\/[A-Za-z0-9._~%-]+)+$/

/** The server's address for the sender of a request, without a slash at the end. */
export function publicUrl({
  publicUrl: fixed,
  trusts,
  prefix = '',
}: PublicUrlOptions): (request: Pick<Request, 'url' | 'headers'>) => string {
  const url = fixed === undefined ? undefined : normalized(fixed)
  if (url !== undefined) return () => url
  return trusts ? ({ url, headers }) => toldBy(new URL(url), headers, trusts) + prefix : ({ url }) => new URL(url).origin + prefix
}

/** The operator's own address, without a slash at the end. */
export function normalized(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const usable = url && /^https?:$/.test(url.protocol) && url.search === '' && url.hash === '' && url.username === ''
  if (!usable) throw new UampError('invalid_request', `"${text}" is not the address of a server: write it like https://example.com`)
  return url.origin + url.pathname.replace(/\/+$/, '')
}

/**
 * The address that the proxy names, as far as it makes sense: some proxies send an unfilled placeholder. The runtime has removed the
 * headers of requests that do not come from a proxy.
 */
function toldBy(url: URL, headers: Headers, trusts: Trusts): string {
  const told = forwarded(headers, trusts)
  const { host } = told
  const proto = told.proto?.toLowerCase()
  const prefix = told.prefix?.replace(/\/+$/, '')
  const scheme = proto === 'http' || proto === 'https' ? proto : url.protocol.slice(0, -1)
  const place = host !== undefined && HOST.test(host) ? host : url.host
  const origin = URL.canParse(`${scheme}://${place}`) ? new URL(`${scheme}://${place}`).origin : url.origin
  return origin + (prefix !== undefined && PREFIX.test(prefix) ? prefix : '')
}

const LOOPBACK = /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/

/**
 * The address that a proof of possession must be for. `Host` says only by which name this machine was called: with another address, or
 * another port, a proof for somebody else would be good here. `own`: the server's own URL, if it is known and no proxy is before it.
 */
export function calledAt(seen: string, own: string | undefined): string {
  if (own === undefined || seen === own) return seen
  const [one, other] = [new URL(seen), new URL(own)]
  const isHere = LOOPBACK.test(one.hostname) && LOOPBACK.test(other.hostname) && one.port === other.port
  return isHere ? seen : own
}
