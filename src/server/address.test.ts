import { expect, test } from 'vitest'
import { addressKey, plainAddress } from './address.ts'

test.each([
  ['192.0.2.1', '192.0.2.1'],
  [' 192.0.2.1:4711 ', '192.0.2.1'],
  ['::ffff:192.0.2.1', '192.0.2.1'],
  ['::FFFF:c000:201', '192.0.2.1'],
  ['::1', '0:0:0:0:0:0:0:1'],
  ['2001:DB8::1', '2001:db8:0:0:0:0:0:1'],
  ['[2001:db8::1]:4711', '2001:db8:0:0:0:0:0:1'],
  ['fe80::1%eth0', 'fe80:0:0:0:0:0:0:1'],
  ['unknown', undefined],
  ['_hidden', undefined],
  ['300.1.1.1', undefined],
  ['1::2::3', undefined],
  ['example.com', undefined],
  ['', undefined],
])('the address %s is %s', (text, expected) => {
  expect(plainAddress(text)).toBe(expected)
})

test('addresses of one /64 are one caller, and IPv4 addresses one each', () => {
  expect(addressKey('2001:db8:1:2::1')).toBe(addressKey('2001:db8:1:2:ffff:ffff:ffff:ffff'))
  expect(addressKey('2001:db8:1:2::1')).not.toBe(addressKey('2001:db8:1:3::1'))
  expect(addressKey('::ffff:192.0.2.1')).toBe('192.0.2.1')
  expect(addressKey('192.0.2.1')).not.toBe(addressKey('192.0.2.2'))
})
