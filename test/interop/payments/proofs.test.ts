/** Payments that are not what was asked for, and payments that come twice. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { verifies } from '../../support/verifies.ts'
import { decoded, earned, encoded, openShop, pay, signed } from './shop.ts'

type Payment = Awaited<ReturnType<typeof signed>>
type Change = (payment: Payment) => unknown

/** The same payment with other fields in its authorization, as who tampers with it would send it. */
const authorized =
  (fields: object): Change =>
  (payment) => ({
    ...payment,
    payload: { ...payment.payload, authorization: { ...payment.payload.authorization, ...fields } },
  })
const accepted =
  (fields: object): Change =>
  (payment) => ({ ...payment, accepted: { ...payment.accepted, ...fields } })
const OTHER = '0x3333333333333333333333333333333333333333'
const seconds = (from: number): string => `${Math.floor(Date.now() / 1000) + from}`

const tampered: readonly (readonly [string, Change, string])[] = [
  ['another nonce than was signed', authorized({ nonce: `0x${'ab'.repeat(32)}` }), 'token_invalid'],
  [
    'a signature of somebody else',
    (given) => ({ ...given, payload: { ...given.payload, signature: `0x${'12'.repeat(65)}` } }),
    'token_invalid',
  ],
  ['another address', authorized({ to: OTHER }), 'token_invalid'],
  ['another address in what it accepts', accepted({ payTo: OTHER }), 'token_invalid'],
  ['another asset', accepted({ asset: OTHER }), 'token_invalid'],
  ['another network', accepted({ network: 'eip155:8453' }), 'token_invalid'],
  ['another scheme', accepted({ scheme: 'upto' }), 'token_invalid'],
  ['too little', authorized({ value: '9999' }), 'insufficient_balance'],
  ['too little in what it accepts', accepted({ amount: '1' }), 'insufficient_balance'],
  ['more than it says that it accepts', authorized({ value: '10001' }), 'insufficient_balance'],
  ['a negative amount', authorized({ value: '-10000' }), 'token_invalid'],
  ['an amount of 1e400', authorized({ value: '1e400' }), 'token_invalid'],
  ['an amount that is no text', authorized({ value: 1e4 }), 'token_invalid'],
  ['an amount with decimals', authorized({ value: `10000.${'0'.repeat(30)}` }), 'token_invalid'],
  ['a time that is over', authorized({ validBefore: seconds(-1) }), 'token_expired'],
  ['a time that is nearly over', authorized({ validBefore: seconds(4) }), 'token_expired'],
  ['a time without end', authorized({ validBefore: '9'.repeat(77) }), 'token_invalid'],
  ['a time that has not come', authorized({ validAfter: seconds(100) }), 'token_invalid'],
  ['a payer that is none', authorized({ from: 'me' }), 'token_invalid'],
  ['no authorization', (given) => ({ ...given, payload: { signature: '0x12' } }), 'token_invalid'],
]

describe('a payment that is not what was asked for is refused, and nothing moves', () => {
  verifies('x402.exact', 'one for another address', () => isRefused(accepted({ payTo: OTHER }), 'token_invalid'))

  test.each(tampered)('%s', (_, change, code) => isRefused(change, code))

  async function isRefused(change: Change, code: string): Promise<void> {
    const { url, facilitator, ledger } = await openShop()
    const { status, headers, body } = await pay(url, change(await signed(url)))
    expect([status, decoded(headers.get('payment-required'))['error']]).toEqual([402, code])
    expect(body.context?.accepts[0]).toMatchObject({ extra: { error: { code } } })
    expect([facilitator.moved, facilitator.asked.includes('/settle')]).toEqual([[], false])
    expect(await earned({ ledger })).toBe('0.00')
  }

  verifies('x402.malformed', 'what is no JSON is a bad request', async () => {
    const { url } = await openShop()
    expect((await pay(url, Buffer.from('{"x402Version":2,').toString('base64'))).status).toBe(400)
  })

  test.each([
    ['a version that nobody knows', { x402Version: 3, payload: {} }],
    ['no payload', { x402Version: 2, accepted: {} }],
    ['an object that pays in no way', { hello: 'world' }],
  ])('what cannot be read is a bad request: %s', async (_, payment) => {
    const { url } = await openShop()
    expect((await pay(url, payment)).status).toBe(400)
    expect((await pay(url, payment, 'x-payment')).status).toBe(400)
  })

  test('a text that is no payment is 402', async () => {
    const { url } = await openShop()
    for (const worthless of ['worthless', '%%%', 'a.b.c']) expect((await pay(url, worthless)).status).toBe(402)
  })
})

describe('a payment counts once', () => {
  verifies('x402.once', 'a replayed payment is refused', async () => {
    const { url, facilitator, ledger } = await openShop()
    const payment = await signed(url)
    expect(await pay(url, payment)).toMatchObject({ status: 200, said: 'Thank you' })
    for (const name of ['payment-signature', 'x-payment', 'x-payment-token']) {
      const { status, headers } = await pay(url, payment, name)
      expect([status, decoded(headers.get('payment-required'))['error']]).toEqual([402, 'token_invalid'])
    }
    expect(facilitator.moved).toHaveLength(1)
    expect(await earned({ ledger })).toBe('0.01')
  })

  test('of many requests with one payment, one is answered', async () => {
    const { url, facilitator, ledger } = await openShop()
    const payment = await signed(url)
    const answers = await Promise.all(Array.from({ length: 8 }, () => pay(url, payment)))
    expect(answers.map(({ status }) => status).sort((one, other) => one - other)).toEqual([200, ...Array.from({ length: 7 }, () => 402)])
    expect(facilitator.moved).toHaveLength(1)
    expect(facilitator.asked.filter((path) => path === '/settle')).toHaveLength(1)
    expect(await earned({ ledger })).toBe('0.01')
  })

  test('a payer who has too little is told so', async () => {
    const { url, facilitator } = await openShop()
    facilitator.act = (path, honest) =>
      path === '/verify' ? Promise.resolve({ isValid: false, invalidReason: 'insufficient_funds' }) : honest()
    const { headers } = await pay(url, await signed(url))
    expect(decoded(headers.get('payment-required'))['error']).toBe('insufficient_balance')
  })

  verifies('x402.secret', 'no proof is left in the store, in the log or in an answer', async () => {
    const data = mkdtempSync(join(tmpdir(), 'uamp-x402-'))
    onTestFinished(() => rmSync(data, { recursive: true, force: true }))
    const { url, logged } = await openShop({ data })
    const payment = await signed(url)
    const answers = [await pay(url, payment), await pay(url, payment)]
    const { signature } = payment.payload
    const [whole, part] = [encoded(payment), signature.slice(2)]
    const kept = readdirSync(data, { recursive: true, encoding: 'utf8' }).map((name) => join(data, name))
    const bytes = kept.filter((path) => statSync(path).isFile()).map((path) => readFileSync(path, 'latin1'))
    const told = answers.map(({ body, headers }) => JSON.stringify([body, [...headers].map(([, value]) => decodedOr(value))]))
    for (const text of [...bytes, ...told, JSON.stringify(logged)]) {
      expect([text.includes(part), text.includes(whole)]).toEqual([false, false])
    }
  })
})

function decodedOr(value: string): string {
  return value + Buffer.from(value, 'base64').toString()
}
