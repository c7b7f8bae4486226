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
