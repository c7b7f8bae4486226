import { expect, test } from 'vitest'
import type { ServerEvent } from '../../src/protocol/events.ts'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { text } from '../../src/core/agent-kit/drafts.ts'
import { storeKey } from '../../src/core/basics/store-key.ts'
import type { Asked } from '../../src/core/ports/payments.ts'
import { UampError } from '../../src/protocol/errors.ts'
import { Accounts } from '../../src/payments/accounts.ts'
import { checkLedger } from '../../src/payments/check.ts'
import { Tokens } from '../../src/payments/tokens.ts'
import { storedSigner } from '../../src/auth/signer.ts'
import type { Store } from '../../src/core/ports/store.ts'
import { passingKeys } from '../../src/stores/file-keys.ts'
import { failingStore, gate, isLock, movesMoney, payer, world } from './ledger-world.ts'

const PART = 1_000_000n
const agent = defineAgent(
  'paid',
  async function* () {
    yield text('fine')
  },
  { price: { call: '0.01' } },
)
const asked = (more: Partial<Asked> = {}): Asked => ({
  principal: payer,
  agent: 'paid',
  session: 's',
  turn: 't',
  response: 'r',
  question: 'q',
  amount: 10n * PART,
  currency: 'USD',
  ...more,
})

test('two refunds of one payment at once give it back once', async () => {
  const { ledger, say, token, money } = await world([agent])
  await say()
  await say()
  const { items } = await ledger.statement('default', `token:${token.id}`, { limit: 1 })
  const payment = await ledger.payment('default', items[0]?.id ?? '')
  if (!payment) throw new Error('There is no payment')
  const refunds = await Promise.allSettled([1, 2].map(() => ledger.refund('default', payment)))
  expect(refunds.map(({ status }) => status)).toEqual(['fulfilled', 'rejected'])
  expect(money().left).toBe(90)
  expect((await ledger.check()).problems).toEqual([])
})

test('money of a lock does not go back to a token that has ended', async () => {
  const { ledger, token, account } = await world([agent])
  const source = await ledger.accounts.get('default', 'outside:USD')
  const lock = await ledger.locks.open(token, { agent: 'paid', openedBy: payer.id, amount: 40n * PART, ttlMs: 60_000 })
  await ledger.tokens.end(token)
  await ledger.locks.release(lock)
  expect({ token: account.balance, source: source.balance }).toEqual({ token: 0n, source: 0n })
})

test('a top-up does not reach a token that ends at the same moment', async () => {
  const { ledger, token, account } = await world([agent])
  const toppedUp = ledger.tokens.topUp(token, 5n * PART, 'outside:USD')
  const ended = ledger.tokens.end(token)
  const [topUp] = await Promise.allSettled([toppedUp, ended])
  await ledger.sweep()
  expect(topUp.status).toBe('rejected')
  expect(account.balance).toBe(0n)
})

test('a token that ends while somebody reads it from the store has ended for all', async () => {
  const { store, token } = await world([agent])
  const read = gate()
  let reads = 0
  // The first answer of the store is the last to arrive.
  const get: Store['get'] = async (key) => {
    const isFirst = key.includes(token.id) && ++reads === 1
    const found = await store.get(key)
    if (isFirst) await read.opened
    return found
  }
  const clocks = { now: Date.now, monotonic: () => performance.now() }
  const signer = storedSigner({ store, keys: passingKeys(), now: Date.now })
  const accounts = new Accounts(store)
  const tokens = new Tokens({ ...clocks, store: { ...store, get }, accounts, signer, newId: () => 'move', ownUrl: () => undefined })
  const late = tokens.get('default', token.id)
  await tokens.end(token)
  read.open()
  expect(await late).toMatchObject({ endedAt: expect.any(Number) })
  expect(() => tokens.checkOpen(token)).toThrow('The token was revoked')
  // What comes back to it goes on to where it came from.
  expect(await tokens.heir('default', token.id)).toBe('outside:USD')
})

test('a lock that was settled cannot be extended', async () => {
  const { ledger, text: token, money } = await world([agent])
  const lock = await ledger.authorise(asked(), { scheme: 'token', token })
  if (!isLock(lock)) throw new Error(lock.message)
  lock.settle(0n).done()
  expect(await lock.extend(PART)).toBe(false)
  expect(money().locked).toBe(0)
})

test('a second principal may spend with a token that was seen before', async () => {
  const { ledger, text: token } = await world([agent], { perDay: 20n })
  const payment = { scheme: 'token', token }
  expect(isLock(await ledger.authorise(asked(), payment))).toBe(true)
  expect(isLock(await ledger.authorise(asked({ principal: { ...payer, id: 'another' } }), payment))).toBe(true)
})

test('a payment that could not be stored does not count as spent today', async () => {
  const { store, failWhen } = failingStore()
  const { say } = await world([agent], { store, perDay: 10n })
  failWhen(movesMoney)
  expect(await say()).toMatchObject({ type: 'response.error', error: { code: 'overloaded' } })
  failWhen(() => false)
  expect(await say()).toMatchObject({ type: 'response.done' })
})

test.each([false, true])('an answer whose payment could not be stored is not told as paid, in a stored session: %s', async (persist) => {
  const { store, failWhen } = failingStore()
  const { open, money } = await world([agent], { store })
  const session = await open({ persist })
  failWhen(movesMoney)
  await session.send({ type: 'response.create', event_id: 'e1' })
  const heard: ServerEvent[] = []
  const reader = session.read({ after: 0 })
  void (async () => {
    for await (const batch of reader) for (const { event } of batch) heard.push(event)
  })()
  await expect.poll(() => heard.map(({ type }) => type)).toContain('response.error')
  expect(heard.find(({ type }) => type === 'response.error')).toMatchObject({ error: { code: 'overloaded' } })
  failWhen(() => false)
  await session.send({ type: 'response.create', event_id: 'e2' })
  await expect.poll(() => heard.at(-1)?.type).toBe('payment.balance')
  // What was not paid has no balance after it.
  expect(heard.filter(({ type }) => type === 'payment.balance' || type === 'response.done')).toHaveLength(2)
  expect(money()).toEqual({ left: 90, locked: 0 })
})

test('while the disk is full, no answers are begun that nobody could be charged for', async () => {
  const { store, failWhen } = failingStore()
  let [isFull, runs] = [false, 0]
  failWhen(() => isFull)
  store.probe = () => (isFull ? Promise.reject(new UampError('overloaded', 'The disk is full')) : Promise.resolve())
  const counted = defineAgent(
    'paid',
    async function* () {
      runs++
      yield 'fine'
    },
    { price: { call: '0.01' } },
  )
  const { say, money, ledger } = await world([counted], { store })
  isFull = true
  for (let turn = 0; turn < 3; turn++) expect(await say()).toMatchObject({ type: 'response.error', error: { code: 'overloaded' } })
  expect(runs).toBe(1)
  await expect(ledger.takeFree(asked(), { calls: 1, per: 'day' })).rejects.toMatchObject({ code: 'overloaded' })
  isFull = false
  expect(await say()).toMatchObject({ type: 'response.done' })
  expect([runs, money()]).toEqual([2, { left: 90, locked: 0 }])
})

test('a check rests while it adds up the movements of an account once more, which may be a million', async () => {
  const { ledger, store } = await world([agent])
  const [from, to] = ['outside:USD', 'agent:USD:paid']
  for (let move = 0; move < 1_200; move++) await ledger.transfer('default', { kind: 'deposit', from, to, amount: PART, currency: 'USD' })
  const rests = async (): Promise<number> => {
    let count = 0
    await checkLedger(store, new Accounts(store), async () => void count++)
    return count
  }
  const before = await rests()
  // A balance that differs is what makes it look again.
  const key = storeKey('default', 'money-account', to)
  const written = await store.get(key)
  expect(written).toBeDefined()
  await store.set(key, { ...(written?.value as object), balance: '1' })
  expect(await rests()).toBeGreaterThan(before)
})

test('a check while money moves finds no problem that is none', async () => {
  const { ledger, say, store } = await world([agent])
  await say()
  const { scan } = store
  const slow: typeof scan = async function* () {
    for await (const kept of scan()) yield kept
    // What was read is old by now.
    await say()
  }
  store.scan = slow
  expect((await ledger.check()).problems).toEqual([])
})

test('a check of many accounts keeps nothing else waiting', async () => {
  const { ledger, store } = await world([agent])
  for (let n = 0; n < 300; n++) {
    const [from, to] = ['outside:USD', `principal:USD:${n}`]
    await ledger.transfer('default', { kind: 'deposit', from, to, amount: PART, currency: 'USD' })
  }
  let [inThisTurn, most] = [0, 0]
  const { get } = store
  store.get = (key) => {
    if (inThisTurn++ === 0) setImmediate(() => (inThisTurn = 0))
    most = Math.max(most, inThisTurn)
    return get(key)
  }
  expect(await checkLedger(store, new Accounts(store))).toMatchObject({ accounts: 302, problems: [] })
  expect(most).toBeLessThan(70)
})

test('an account that somebody is about to use is not loaded a second time', async () => {
  const {
    ledger,
    text: token,
    account,
    token: { id },
  } = await world([agent])
  for (let n = 0; n < 10_000; n++) {
    await ledger.accounts.get('default', `principal:USD:${n}`)
    if (n % 1000 === 0) await ledger.authorise(asked({ amount: 0n }), { scheme: 'token', token })
  }
  expect(await ledger.accounts.get('default', `token:${id}`)).toBe(account)
})
