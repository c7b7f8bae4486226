import { describe, expect, test } from 'vitest'
import { UampError } from '../protocol/errors.ts'
import { paymentRefusal } from '../protocol/payment-refusal.ts'
import { paidHeaders, paymentFrom, paymentOf, unpaidAnswer } from './payment.ts'

const JWT = 'eyJhbGciOiJSUzI1NiJ9.eyJqdGkiOiIxIn0.c2ln'
const base64 = (value: unknown): string => btoa(typeof value === 'string' ? value : JSON.stringify(value))
const V1 = { x402Version: 1, scheme: 'exact', network: 'base', payload: { signature: '0x' } }
const V2 = { x402Version: 2, accepted: { scheme: 'exact', network: 'eip155:8453' }, payload: { signature: '0x' } }
const TOKEN = { scheme: 'token', network: 'uamp', payload: { token: JWT, amount: '0.05' } }

describe('what a payment is', () => {
  test.each([
    ['a JWT', JWT, { scheme: 'token', token: JWT }],
    ['the base64 of a JWT', base64(JWT), { scheme: 'token', token: JWT }],
    ['an object with a token', base64(TOKEN), { scheme: 'token', network: 'uamp', token: JWT, amount: '0.05' }],
    ['x402 of version 1', base64(V1), { scheme: 'exact', network: 'base', proof: V1 }],
    ['x402 of version 2', base64(V2), { scheme: 'exact', network: 'eip155:8453', proof: V2 }],
    ['an object as it is', V2, { scheme: 'exact', network: 'eip155:8453', proof: V2 }],
    ['any other text', 'coin', { scheme: 'token', token: 'coin' }],
  ])('%s', (_, given, payment) => expect(paymentOf(given)).toEqual(payment))

  test.each([base64({}), base64({ x402Version: 3, payload: {} }), base64({ x402Version: 2 }), base64('{"x402Version":')])(
    'not this: %s',
    (given) => expect(() => paymentOf(given)).toThrow(expect.objectContaining({ code: 'invalid_request' })),
  )

  test('two headers that differ are refused, and two that say the same are not', () => {
    expect(() => paymentFrom(new Headers({ 'x-payment': 'a', 'payment-signature': 'b' }))).toThrow('differ')
    expect(paymentFrom(new Headers({ 'x-payment': JWT, 'x-payment-token': JWT }))).toEqual({ scheme: 'token', token: JWT })
    expect(paymentFrom(new Headers())).toBeUndefined()
  })
})

test('a refusal without x402 has no more than before', () => {
  const required = { type: 'payment.required', response_id: 'r', event_id: 'e', requirements: { amount: '1', currency: 'USD' } } as const
  expect(unpaidAnswer(paymentRefusal(required as never))).toEqual({ body: {}, headers: { 'cache-control': 'private, no-store' } })
  expect(unpaidAnswer(new UampError('internal', 'No'))).toEqual({ body: {}, headers: {} })
})

test('an answer that was not paid on a chain has no receipt', () => {
  expect(paidHeaders({ uamp: { payments: [{}] } })).toEqual({})
  expect(paidHeaders(undefined)).toEqual({})
})
