import { BlockList, isIP } from 'node:net'
import { UampError } from '../../protocol/errors.ts'
import type { Trusts } from '../forwarded.ts'

/** Keeps IPv4 and IPv6 apart, because Node's list takes an IPv4 address for one of `::ffff:0:0/96`, which lies in `::/3`. */
class Networks {
  readonly #v4 = new BlockList()
  readonly #v6 = new BlockList()

  /** Adds `10.0.0.0/8`; false if the text is not a network. */
  add(network: string): boolean {
    const [address = '', bits = ''] = network.split('/')
    const family = isIP(address)
    const length = Number(bits)
    if (family === 0 || !/^\d{1,3}$/.test(bits) || length > (family === 6 ? 128 : 32)) return false
    if (family === 6) this.#v6.addSubnet(address, length, 'ipv6')
    else this.#v4.addSubnet(address, length, 'ipv4')
    return true
  }

  has(address: string): boolean {
    const family = isIP(address)
    return family === 6 ? this.#v6.check(address, 'ipv6') : family === 4 && this.#v4.check(address, 'ipv4')
  }
}

/** Trusts the proxies that an operator names, as addresses (`10.0.0.7`, `::1`) and networks (`10.0.0.0/8`). */
export function trustedProxies(named: readonly string[]): Trusts {
  // Not `true`, which would trust every client.
  if (!Array.isArray(named)) throw notAProxy(String(named))
  const networks = new Networks()
  for (const proxy of named) {
    const family = isIP(proxy)
    if (!networks.add(family === 0 ? proxy : `${proxy}/${family === 6 ? 128 : 32}`)) throw notAProxy(proxy)
  }
  return (address) => networks.has(address)
}

function notAProxy(proxy: string): UampError {
  return new UampError(
    'invalid_request',
    `"${proxy}" is not a proxy: list the addresses or networks of proxies in trustProxy, like 10.0.0.7 or 10.0.0.0/8`,
  )
}

/** All that is not the public internet (IANA special-purpose registries), and 168.63.129.16, where Azure keeps its metadata. */
const FORBIDDEN_V4 = `0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24
  192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4 168.63.129.16/32`
/** Only 2000::/3 is public. Outside it are ::1, IPv4-mapped, NAT64, unique local, link-local and multicast; inside, tunnels to IPv4. */
const FORBIDDEN_V6 = '::/3 4000::/2 8000::/1 2001::/23 2001:db8::/32 2002::/16 3fff::/20'

const RULE = /^(?:\[([^\]]+)\]|([^[\]:]+))(?::(\d{1,5}))?$/
const LOCAL_NAME = /^(?:.+\.)?localhost$/

/** Decides which addresses and names may be called. */
export class AddressRules {
  readonly #forbidden = new Networks()
  readonly #allowed = new Networks()
  /** `host` or `host:port`. */
  readonly #hosts = new Set<string>()

  /** `allow`: private hosts, with or without a port, and networks (`10.0.0.0/8`) that may be called. */
  constructor(allow: readonly string[] = []) {
    for (const network of `${FORBIDDEN_V4} ${FORBIDDEN_V6}`.split(/\s+/)) this.#forbidden.add(network)
    for (const rule of allow) this.#allow(rule)
  }

  /** True if the host itself is allowed, whatever its addresses are. */
  allowsHost({ hostname, port, protocol }: URL): boolean {
    const host = plainHost(hostname)
    return this.#hosts.has(host) || this.#hosts.has(`${host}:${port || DEFAULT_PORTS[protocol]}`)
  }

  /** True if the address must not be called. That includes texts that are not an address, and addresses with a zone. */
  forbids(address: string): boolean {
    return isIP(address) === 0 || address.includes('%') || (this.#forbidden.has(address) && !this.#allowed.has(address))
  }

  /** True if the address lies in an allowed network. */
  allowsAddress(address: string): boolean {
    return this.#allowed.has(address)
  }

  #allow(rule: string): void {
    if (rule.includes('/')) {
      if (!this.#allowed.add(rule)) throw unusable(rule)
      return
    }
    const [, v6, name, port] = RULE.exec(rule) ?? []
    const bare = v6 ?? name ?? (isIP(rule) === 6 ? rule : undefined)
    const written = bare === undefined ? undefined : `http://${isIP(bare) === 6 ? `[${bare}]` : bare}`
    if (written === undefined || !URL.canParse(written)) throw unusable(rule)
    const host = plainHost(new URL(written).hostname)
    this.#hosts.add(port === undefined ? host : `${host}:${Number(port)}`)
  }
}

const DEFAULT_PORTS: Readonly<Record<string, string>> = { 'http:': '80', 'https:': '443' }

/** The name without brackets, and without the dot that ends a full name. `URL` has unified the forms of an IPv4 address. */
export function plainHost(hostname: string): string {
  return hostname.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, '')
}

export function isLocalName(host: string): boolean {
  return LOCAL_NAME.test(host)
}

function unusable(rule: string): UampError {
  return new UampError('invalid_request', `"${rule}" allows nothing: write a host, a host with its port, or a network like 10.0.0.0/8`)
}
