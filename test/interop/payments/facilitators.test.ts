/** Facilitators that are down, slow, or lie, and what becomes of the money. */
import { describe, expect, test } from 'vitest'
import { verifies } from '../../support/verifies.ts'
import type { LocalFacilitator } from './facilitator.ts'
import { overWebSocket } from '../../support/wire.ts'
import { decoded, earned, encoded, openShop, pay, signed } from './shop.ts'

type Act = NonNullable<LocalFacilitator['act']>

/** Acts when one path is asked for, and is honest otherwise. */
const at =
  (where: string, act: Act): Act =>
  (path, honest, response) =>
    path === where ? act(path, honest, response) : honest()

const down: Act = (_, __, response) => {
  response.statusCode = 503
  response.end('down')
  return Promise.resolve(undefined)
}
const never: Act = () => Promise.resolve(undefined)
/** Does its work, and dies before it answers. */
const dies: Act = async (_, honest, response) => {
  await honest()
  response.socket?.destroy()
  return undefined
}
const lies =
  (lie: object): Act =>
  async (_, honest) => ({ ...(await honest()), ...lie })

describe('before the work', () => {
  test.each([
    ['down', at('/verify', down), 'payment_failed'],
    ['slow', at('/verify', never), 'payment_failed'],
    ['gone', at('/verify', dies), 'payment_failed'],
    ['one that speaks of another payer', at('/verify', lies({ payer: '0x3333333333333333333333333333333333333333' })), 'token_invalid'],
    ['one that says nothing', at('/verify', () => Promise.resolve({})), 'token_invalid'],
  ])('a facilitator that is %s: the payment is not taken, and can be made again', async (_, act, code) => {
    const { url, facilitator, ledger } = await openShop({ timeoutMs: 4000 })
    const payment = await signed(url)
    facilitator.act = act
    const { status, headers } = await pay(url, payment)
    expect([status, decoded(headers.get('payment-required'))['error']]).toEqual([402, code])
    expect(facilitator.asked).not.toContain('/settle')
    facilitator.act = undefined
    expect((await pay(url, payment)).said).toBe('Thank you')
    expect(await earned({ ledger })).toBe('0.01')
  })
})

describe('after the work', () => {
  verifies('x402.facilitator', 'a settlement that fails: no answer, and no money', async () => {
    const { url, facilitator, ledger } = await openShop()
    const payment = await signed(url)
    facilitator.act = at('/settle', () =>
      Promise.resolve({ success: false, errorReason: 'insufficient_funds', transaction: '', network: 'eip155:84532' }),
    )
    const failed = await pay(url, payment)
    expect(failed).toMatchObject({ status: 402, said: undefined, body: { error: { code: 'payment_required' }, x402Version: 1 } })
    expect(decoded(failed.headers.get('payment-response'))).toMatchObject({ success: false, errorReason: 'insufficient_funds' })
    expect([JSON.stringify(failed.body).includes('Thank'), facilitator.moved]).toEqual([false, []])
    expect(await earned({ ledger })).toBe('0.00')
    facilitator.act = undefined
    expect((await pay(url, payment)).said).toBe('Thank you')
  })

  describe.each([
    ['down', at('/settle', down), 0],
    ['slow', at('/settle', never), 0],
    ['one that dies when the money has moved', at('/settle', dies), 1],
    ['one that tells of no transaction', at('/settle', lies({ transaction: '' })), 1],
    ['one that tells of another payer', at('/settle', lies({ payer: '0x3333333333333333333333333333333333333333' })), 1],
    ['one that tells of another network', at('/settle', lies({ network: 'eip155:1' })), 1],
    ['one that tells of another amount', at('/settle', lies({ amount: '1' })), 1],
    ['one that tells of a failure and a transaction', at('/settle', lies({ success: false })), 1],
  ] as const)('a facilitator that is %s', (_, act, moves) => {
    verifies('x402.pending', 'is not believed; who sends the request again gets the answer once, and pays once', async () => {
      const { url, facilitator, ledger } = await openShop({ timeoutMs: 4000 })
      const payment = await signed(url)
      facilitator.act = act
      const pending = await pay(url, payment)
      expect([pending.status, pending.said, facilitator.moved.length]).toEqual([402, undefined, moves])
      expect(decoded(pending.headers.get('payment-response'))).toMatchObject({ success: false, errorReason: 'settlement_pending' })
      expect(await earned({ ledger })).toBe('0.00')
      // While it is not known, nothing else is taken for it.
      expect((await pay(url, payment)).status).toBe(402)
      facilitator.act = undefined
      expect((await pay(url, payment)).said).toBe('Thank you')
      expect(await earned({ ledger })).toBe('0.01')
      expect(facilitator.moved).toHaveLength(1)
      expect((await pay(url, payment)).status).toBe(402)
      expect(await earned({ ledger })).toBe('0.01')
    })
  })

  verifies('payments-rest:state', 'it can be looked at while it is settling, and when it has settled', async () => {
    const { url, facilitator } = await openShop()
    const payment = await signed(url)
    const look = async (id: string) => (await (await fetch(`${url}/api/payments/payments/${id}`)).json()) as object
    const wire = await overWebSocket(url)
    await wire.open({ payment_token: encoded(payment) })
    facilitator.act = at('/settle', down)
    await wire.send({ type: 'response.create' })
    const { payment_id: id } = await wire.next('payment.accepted')
    const { response_id: responseId } = await wire.next('response.error')
    const about = { paymentId: id, amount: '0.01', currency: 'USD', agent: 'shop', responseId }
    expect(await look(id)).toMatchObject({ ...about, state: 'settling' })
    facilitator.act = undefined
    expect((await pay(url, payment)).said).toBe('Thank you')
    expect(await look(id)).toMatchObject({ ...about, state: 'settled' })
  })

  test('a payment that only its first facilitator could know of is not taken for money', async () => {
    const { url, facilitator, ledger } = await openShop()
    const payment = await signed(url)
    facilitator.remembers = false
    facilitator.act = at('/settle', dies)
    expect((await pay(url, payment)).status).toBe(402)
    facilitator.act = undefined
    expect((await pay(url, payment)).status).toBe(402)
    expect(await earned({ ledger })).toBe('0.00')
  })
})
