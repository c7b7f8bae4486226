import { expect, test } from 'vitest'
import { exactFor, fromAtomic, toAtomic, x402Config } from './settings.ts'

const GIVEN = { network: 'eip155:8453', payTo: `0x${'1'.repeat(40)}`, facilitator: 'https://facilitator.example/' }

test('amounts become the smallest units of an asset, and are rounded up', () => {
  expect([toAtomic(10_000_000n, 6), toAtomic(1n, 6), toAtomic(1n, 9), toAtomic(1n, 18)]).toEqual([10_000n, 1n, 1n, 1_000_000_000n])
  expect([fromAtomic(10_000n, 6), fromAtomic(1n, 6), fromAtomic(1_999_999_999n, 18)]).toEqual([10_000_000n, 1000n, 1n])
})

test('USDC is known on Base', () => {
  const config = x402Config(GIVEN)
  expect(config).toMatchObject({ facilitator: 'https://facilitator.example', currency: 'USD', decimals: 6 })
  expect(exactFor(config, 10_000_000n)).toEqual({
    scheme: 'exact',
    network: 'eip155:8453',
    amount: '10000',
    asset: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
    payTo: GIVEN.payTo,
    maxTimeoutSeconds: 300,
    extra: { name: 'USD Coin', version: '2' },
  })
})

test.each([
  [{ network: 'base' }, 'network'],
  [{ payTo: 'me' }, 'payTo'],
  [{ network: 'eip155:1' }, 'asset'],
  [{ asset: `0x${'2'.repeat(40)}` }, 'extra'],
  [{ facilitator: 'nowhere' }, 'facilitator'],
  [{ decimals: 1.5 }, 'decimals'],
  [{ currency: '$' }, 'currency'],
  [{ maxTimeoutSeconds: 1 }, 'maxTimeoutSeconds'],
])('settings that cannot work stop the server: %j', (wrong, name) => {
  expect(() => x402Config({ ...GIVEN, ...wrong })).toThrow(`payments.x402.${name}`)
})
