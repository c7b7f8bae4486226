import { expect, test } from 'vitest'
import { plainAddress } from './address.ts'

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
