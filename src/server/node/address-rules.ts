import { isIP } from 'node:net'
import { UampError } from '../../protocol/errors.ts'
import { Networks } from './networks.ts'

/** Everything that is not the public internet (IANA special-purpose registries), and 168.63.129.16, where Azure keeps its metadata. */
const FORBIDDEN_V4 = `0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24
  192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4 168.63.129.16/32`
/** Outside 2000::/3 nothing is public: ::1, IPv4-mapped, NAT64, unique local, link-local, multicast. Inside it tunnels lead back to IPv4. */
const FORBIDDEN_V6 = '::/3 4000::/2 8000::/1 2001::/23 2001:db8::/32 2002::/16 3fff::/20'

const RULE = /^(?:\[([^\]]+)\]|([^[\]:]+))(?::(\d{1,5}))?$/
const LOCAL_NAME = /^(?:.+\.)?localhost$/

/** Which addresses and names may be called. */
export class AddressRules {
  readonly #forbidden = new Networks()
  readonly #allowed = new Networks()
  /** `host` or `host:port`. */
  readonly #hosts = new Set<string>()

  /** `allow`: hosts with or without a port, and networks as `10.0.0.0/8`, that may be called though they are private. */
  constructor(allow: readonly string[] = []) {
    for (const network of `${FORBIDDEN_V4} ${FORBIDDEN_V6}`.split(/\s+/)) this.#forbidden.add(network)
    for (const rule of allow) this.#allow(rule)
  }

  /** Whether the host itself was allowed, whatever its addresses are. */
  allowsHost({ hostname, port, protocol }: URL): boolean {
    const host = plainHost(hostname)
    return this.#hosts.has(host) || this.#hosts.has(`${host}:${port || DEFAULT_PORTS[protocol]}`)
  }

  /** Whether nobody may be sent to this address. What is none, as one with a zone, is forbidden. */
  forbids(address: string): boolean {
    return isIP(address) === 0 || address.includes('%') || (this.#forbidden.has(address) && !this.#allowed.has(address))
  }

  /** Whether the address lies in a network that was allowed. */
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

/** As it is resolved: without brackets, and without the dot that ends a full name. `URL` has made one of all forms of an IPv4 address. */
export function plainHost(hostname: string): string {
  return hostname.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, '')
}

export function isLocalName(host: string): boolean {
  return LOCAL_NAME.test(host)
}

function unusable(rule: string): UampError {
  return new UampError('invalid_request', `"${rule}" allows nothing: write a host, a host with its port, or a network like 10.0.0.0/8`)
}
