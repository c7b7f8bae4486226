/** A payment can be looked at: what it is for, and how it stands. */
import { expect } from 'vitest'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { otherLedger, TOKEN } from '../support/other-ledger.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'
import { overWebSocket } from '../support/wire.ts'
import { asking, SECRETS } from './rest-support.ts'

/** Waits in the middle of its answer, until it is told to go on. */
function slow() {
  let go: () => void = () => undefined
  const gone = new Promise<void>((resolve) => (go = resolve))
  const agent = defineAgent('shop', async function* (turn) {
    const paid = await turn.charge({ amount: '0.50', key: 'a picture' })
    yield 'half'
    await gone
    yield ' whole'
    paid.settle('0.20')
  })
  return { agent, go: () => go() }
}

verifies('payments-rest:state', 'a payment of a turn is authorised, then settled, then given back', async () => {
  const { agent, go } = slow()
  const grants = { shop: ['host:shop'], bank: ['bank'] } as const
  const { url } = await startServer(agent, { tokens: SECRETS, grants })
  const { does, refused } = asking(url)
  await does('bank', 'POST deposit', { principal: 'alice', amount: '5' })
  const { token, tokenId } = await does('alice', 'POST tokens', { amount: '1', agents: 'shop' })
  const wire = await overWebSocket(url, { token: SECRETS.bob })
  const session = await wire.open({ payment_token: token })
  await wire.send({ type: 'input.text', text: 'hello' })
  await wire.send({ type: 'response.create' })
  const { payment_id: id } = await wire.next('payment.accepted')
  const { response_id } = await wire.next('response.delta')
  const about = { paymentId: id, currency: 'USD', agent: 'shop', principal: 'bob', sessionId: session, responseId: response_id }
  const authorised = { ...about, state: 'authorised', amount: '0.50', question: expect.stringContaining('a picture') }
  for (const who of ['bob', 'shop', 'bank'] as const) expect(await does(who, `GET payments/${id}`)).toMatchObject(authorised)
  expect(await refused('alice', `GET payments/${id}`)).toEqual([404, 'not_found'])
  go()
  await wire.next('response.done')
  const settled = { ...authorised, state: 'settled', amount: '0.20' }
  // Now alice, too: it was her token.
  for (const who of ['bob', 'shop', 'bank', 'alice'] as const) expect(await does(who, `GET payments/${id}`)).toMatchObject(settled)
  const { entries } = await does('alice', `GET statements?token=${tokenId as string}&limit=1`)
  expect(entries).toMatchObject([
    { id, type: 'payment', amount: '0.20', responseId: response_id, principal: 'bob', question: settled.question },
  ])
  await does('shop', 'POST refund', { paymentId: id, amount: '0.05' })
  expect(await does('bob', `GET payments/${id}`)).toMatchObject({ ...settled, refunded: '0.05' })
  expect(await refused('bob', 'GET payments/pay_x')).toEqual([404, 'not_found'])
})

verifies('payments-rest:state', 'a payment that nobody needed leaves nothing to look at', async () => {
  const never = new Promise<void>(() => undefined)
  const agent = defineAgent('shop', async function* (turn) {
    await turn.charge({ amount: '0.50' })
    await never
    yield 'nothing'
  })
  const { url } = await startServer(agent)
  const { does, refused } = asking(url)
  const { token } = await does(undefined, 'POST tokens', { amount: '1', agents: 'shop' })
  const wire = await overWebSocket(url)
  await wire.open({ payment_token: token })
  await wire.send({ type: 'response.create' })
  const { payment_id: id } = await wire.next('payment.accepted')
  expect(await does(undefined, `GET payments/${id}`)).toMatchObject({ state: 'authorised' })
  await wire.send({ type: 'response.cancel' })
  await wire.next('response.cancelled')
  expect(await refused(undefined, `GET payments/${id}`)).toEqual([404, 'not_found'])
})

/** The lock of the second one has ended there before anybody could be asked to settle it. */
const LATER = [
  ['settled', undefined],
  ['released', { status: 409, body: { error: { code: 'conflict' } } }],
] as const
for (const [end, answer] of LATER) {
  verifies('payments-rest:state', `a payment that a ledger elsewhere has not settled yet is settling, then ${end}`, async () => {
    let isDown = true
    const { options } = await otherLedger(({ path }) => {
      if (!path.endsWith('/settle')) return undefined
      return isDown ? { status: 500, body: {} } : answer
    })
    const shop = defineAgent(
      'shop',
      async function* () {
        yield 'Hi'
      },
      { price: { call: '0.25' } },
    )
    const { url } = await startServer(shop, options)
    const { does } = asking(url)
    const wire = await overWebSocket(url)
    await wire.open({ payment_token: TOKEN })
    await wire.send({ type: 'response.create' })
    const { payment_id: id } = await wire.next('payment.accepted')
    const { response } = await wire.next('response.done')
    const facts = { amount: '0.25', currency: 'USD', agent: 'shop', responseId: response.id, question: expect.any(String) }
    expect(await does(undefined, `GET payments/${id}`)).toMatchObject({ ...facts, state: 'settling' })
    isDown = false
    await expect.poll(() => does(undefined, `GET payments/${id}`)).toMatchObject({ ...facts, state: end })
  })
}
