import { expect, test } from 'vitest'
import { trustedProxies } from './networks.ts'

test('proxies are named by address and by network', () => {
  const trusts = trustedProxies(['10.0.0.7', '192.168.0.0/16', '::1', 'fd00::/8'])
  for (const address of ['10.0.0.7', '192.168.3.4', '0:0:0:0:0:0:0:1', 'fd12::1'])
    expect([address, trusts(address)]).toEqual([address, true])
  for (const address of ['10.0.0.8', '127.0.0.1', '2001:db8::1', '', 'unknown'])
    expect([address, trusts(address)]).toEqual([address, false])
})

test.each([['proxy.example'], ['10.0.0.0/33'], ['10.0.0.0/'], ['*'], [true], ['']])('%s is not a proxy', (named) => {
  expect(() => trustedProxies(named === true ? (true as never) : [named as string])).toThrow(`"${named}" is not a proxy`)
})
