import { BlockList, isIP } from 'node:net'

/** Networks of both families, apart: a list of Node's takes an IPv4 address for one of `::ffff:0:0/96`, which lies in `::/3`. */
export class Networks {
  readonly #v4 = new BlockList()
  readonly #v6 = new BlockList()

  /** `10.0.0.0/8`. False: it is no network. */
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
