import { expect, test } from 'vitest'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { text } from '../../src/core/agent-kit/drafts.ts'
import { failingStore, gate, movesMoney, world } from './ledger-world.ts'

test('a turn that is stopped while a payment is looked up keeps nothing locked', async () => {
  const [asked, looked] = [gate(), gate()]
  const agent = defineAgent('slow', async function* (turn) {
    yield text('begun')
    await turn.charge({ amount: '0.01' })
    yield text('paid')
  })
  const { ledger, open, money } = await world([agent])
  const { authorise } = ledger
  const authorised = gate()
  ledger.authorise = (async (...given: Parameters<typeof authorise>) => {
    asked.open()
    await looked.opened
    const found = await authorise.apply(ledger, given)
    authorised.open()
    return found
  }) as typeof authorise
  const session = await open()
  await session.send({ type: 'response.create', event_id: 'e1' })
  await asked.opened
  await session.end()
  looked.open()
  await authorised.opened
  await expect.poll(money).toEqual({ left: 100, locked: 0 })
})

test('a charge that is made after the end of a turn is refused, and locks nothing', async () => {
  const late = gate()
  let refused: unknown
  const agent = defineAgent('late', async function* (turn) {
    yield text('done')
    void late.opened.then(() => turn.charge({ amount: '0.01' })).catch((error: unknown) => (refused = error))
  })
  const { say, money } = await world([agent])
  await say()
  late.open()
  await expect.poll(() => refused).toMatchObject({ code: 'cancelled' })
  expect(money()).toEqual({ left: 100, locked: 0 })
})

test('a parked turn that is given up gives back what it locked meanwhile', async () => {
  const looked = gate()
  const agent = defineAgent('parked', async function* (turn) {
    yield text('begun')
    await Promise.all([turn.ask('tool.call', { name: 'f', arguments: '{}', call_id: 'c' }), turn.charge({ amount: '0.01' })])
  })
  const { ledger, open, money } = await world([agent])
  const { authorise } = ledger
  ledger.authorise = (async (...given: Parameters<typeof authorise>) => {
    await looked.opened
    return authorise.apply(ledger, given)
  }) as typeof authorise
  const session = await open({ duplex: false })
  const reader = session.read()
  await session.send({ type: 'response.create', event_id: 'e1' })
  for await (const batch of reader) if (batch.has(new Set(['response.done']))) break
  looked.open()
  await expect.poll(money).toEqual({ left: 100, locked: 10 })
  await session.end()
  await expect.poll(money).toEqual({ left: 100, locked: 0 })
})

test('money is back if the end of a response cannot be stored, and nobody is told that it was paid', async () => {
  const agent = defineAgent(
    'paid',
    async function* () {
      yield text('fine')
    },
    { price: { call: '0.01' } },
  )
  const { store, failWhen } = failingStore()
  const { say, money, ledger } = await world([agent], { store })
  failWhen(movesMoney)
  expect(await say()).toMatchObject({ type: 'response.error', error: { code: 'overloaded' } })
  expect(money()).toEqual({ left: 100, locked: 0 })
  failWhen(() => false)
  expect(await say()).toMatchObject({ type: 'response.done' })
  expect(money()).toEqual({ left: 90, locked: 0 })
  expect((await ledger.check()).problems).toEqual([])
})

test('money is back if something fails between the bill and the store', async () => {
  const agent = defineAgent(
    'paid',
    async function* () {
      yield text('fine')
    },
    { price: { call: '0.01' } },
  )
  const failed = gate()
  const countEvents = (): never => {
    failed.open()
    throw new Error('No')
  }
  const { open, money } = await world([agent], { meter: { countEvents } })
  const session = await open()
  await session.send({ type: 'response.create', event_id: 'e1' })
  await failed.opened
  await expect.poll(money).toEqual({ left: 100, locked: 0 })
})

test('an agent that asks for money by an error and runs again pays its own price once', async () => {
  let runs = 0
  const agent = defineAgent(
    'again',
    async function* () {
      const { UampError } = await import('../../src/protocol/errors.ts')
      if (++runs === 1) throw new UampError('payment_required', 'More', { details: { amount: '0.02', currency: 'USD' } })
      yield text('fine')
    },
    { price: { call: '0.01' } },
  )
  const { say, money } = await world([agent], { thousandths: 30 })
  expect(await say()).toMatchObject({ type: 'response.done' })
  expect(money()).toEqual({ left: 0, locked: 0 })
})

test('a response that opens after a question is what its payment is for', async () => {
  const agent = defineAgent(
    'paid',
    async function* (turn) {
      yield text(turn.id)
    },
    { price: { call: '0.01' } },
  )
  const {
    gateway,
    ledger,
    text: token,
    token: { id },
  } = await world([agent])
  const config = { modalities: ['text'] }
  const principal = { tenant: 'default', id: 'payer', scopes: [] }
  const session = await gateway.open({
    transport: 'test',
    agent: 'paid',
    principal,
    config,
    duplex: false,
    persist: true,
    onDetach: 'continue',
  })
  const ends: string[] = []
  void (async () => {
    for await (const batch of session.read())
      for (const { event } of batch) if (event.type === 'response.done') ends.push(event.response.id)
  })()
  await session.send({ type: 'response.create', event_id: 'e1' })
  await expect.poll(() => ends.length).toBe(1)
  await session.send({ type: 'payment.submit', event_id: 'e2', payment: { scheme: 'token', token } })
  await session.send({ type: 'response.create', event_id: 'e3' })
  await expect.poll(() => ends.length).toBe(2)
  const { items } = await ledger.statement('default', `token:${id}`, { limit: 1 })
  expect(items[0]).toMatchObject({ kind: 'payment', response: ends[1] })
})

test('money that an agent handed on and did not give back is back after each of its answers, and counts no longer as spent', async () => {
  const agent = defineAgent('broker', async function* (turn) {
    await turn.handOn({ amount: '0.02', agent: 'far' })
    yield text('fine')
  })
  const { say, money } = await world([agent], { perDay: 30n })
  for (let answer = 0; answer < 3; answer++) {
    expect(await say()).toMatchObject({ type: 'response.done' })
    await expect.poll(money).toEqual({ left: 100, locked: 0 })
  }
})
