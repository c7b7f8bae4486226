import { expect, test } from 'vitest'
import { paymentHeaders } from './demand.ts'

test.each(['secret\nx-other: 1', 'secret\u0000', 'secrét'])(
  'a payment that no header can have is refused, and not repeated: %j',
  (token) => {
    const made = (): unknown => paymentHeaders({ scheme: 'token', token })
    expect(made).toThrow('The payment has characters that no header can have')
    expect(made).not.toThrow(/secr/)
  },
)

test('a payment goes into the header that its version has', () => {
  expect(paymentHeaders({ scheme: 'token', token: 'a.b.c' })).toEqual({ 'x-payment': 'a.b.c' })
  expect(paymentHeaders({ scheme: 'exact', proof: { x402Version: 1 } })).toEqual({ 'x-payment': btoa('{"x402Version":1}') })
  expect(paymentHeaders({ scheme: 'exact', proof: { x402Version: 2 } })).toEqual({ 'payment-signature': btoa('{"x402Version":2}') })
})
