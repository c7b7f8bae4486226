import { isIP } from 'node:net'
import { UampError } from '../../protocol/errors.ts'
import type { Trusts } from '../forwarded.ts'
import { Networks } from './networks.ts'

/** The proxies that an operator names, as addresses (`10.0.0.7`, `::1`) and networks (`10.0.0.0/8`). */
export function trustedProxies(named: readonly string[]): Trusts {
  // Once it was true or false, and true believed every client.
  if (!Array.isArray(named)) throw unusable(String(named))
  const networks = new Networks()
  for (const proxy of named) {
    const family = isIP(proxy)
    if (!networks.add(family === 0 ? proxy : `${proxy}/${family === 6 ? 128 : 32}`)) throw unusable(proxy)
  }
  return (address) => networks.has(address)
}

function unusable(proxy: string): UampError {
  return new UampError(
    'invalid_request',
    `"${proxy}" names no proxy: list the addresses or networks of proxies in trustProxy, like 10.0.0.7 or 10.0.0.0/8`,
  )
}
