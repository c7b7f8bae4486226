/** What money does over every transport: each row is one story, told by the client of each protocol. */
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { serve, type RunningServer } from '../../../src/serve/index.ts'
import { coin, expiredCoin, forgedCoins, left, settled, topUp } from '../../support/money.ts'
import type { Client, Driver } from './driver.ts'
import { Holds, shop } from './shop.ts'

const ANSWER = 'Paid 0.05 USD. Thank you.'
const TOPUP = 'This is the first half of the answer. Paid 0.05 USD: this is the second half.'
const TWICE = 'The first half and the second.'

export function contract(drivers: readonly Driver[]): void {
  const holds = new Holds()
  let server: RunningServer
  let expired: string
  beforeAll(async () => {
    server = await serve(shop(holds), { port: 0, data: 'memory', log: () => undefined })
    expired = await expiredCoin(server)
  })
  afterAll(() => server.close({ graceMs: 0 }))

  const open = (driver: Driver): Promise<Client> => driver.open({ url: server.url, after: (task) => onTestFinished(task) })
  /** The tokens have just this left, nothing is locked, and the ledger adds up. */
  const have = async (tokens: Readonly<Record<string, string>>): Promise<void> => {
    // An answer that was stopped is paid for when its agent has cleaned up.
    for (const [token, amount] of Object.entries(tokens)) await expect.poll(() => left(server, token)).toBe(amount)
    await settled(server, Object.keys(tokens))
  }

  describe.each(drivers)('$name', (driver) => {
    test('what is asked for is paid, and answered', async () => {
      const client = await open(driver)
      const token = await coin(server, '1')
      const asked = await client.say('/pay 0.05')
      expect(asked).toMatchObject({ end: 'asked', text: '', demand: { amount: '0.05', currency: 'USD' } })
      const paid = await client.pay(token)
      expect(paid).toMatchObject({ end: 'done', text: ANSWER })
      if (paid.paid) expect(paid.paid).toEqual([{ payment_id: expect.any(String), scheme: 'token', amount: '0.05', currency: 'USD' }])
      if (paid.events) {
        const before = driver.name === 'AG-UI' || driver.name.startsWith('ACP') || driver.name === 'Omnia' ? [] : ['payment.required']
        // A run is one request and its reply: nobody is there any more to hear the balance.
        const after = driver.name === 'AG-UI' ? [] : ['payment.balance']
        expect(paid.events.map(({ type }) => type)).toEqual([...before, 'payment.accepted', 'text', ...after])
        const [accepted, balance] = paid.events.filter(({ type }) => type === 'payment.accepted' || type === 'payment.balance')
        expect(accepted).toMatchObject({ payment_id: expect.any(String), balance_remaining: '0.95' })
        if (driver.name !== 'AG-UI')
          expect(balance).toMatchObject({
            balance: '0.95',
            currency: 'USD',
            low_balance_warning: false,
            estimated_remaining: 19,
            expires_at: expect.any(Number),
            balance_remaining: '0.95',
            threshold: '0.25',
          })
      }
      await have({ [token]: '0.95' })
    })

    test.each(driver.ways)('what is paid in advance is not asked for: %s', async (way) => {
      const client = await open(driver)
      const token = await coin(server, '1')
      expect(await client.say('/pay 0.05', { token, way })).toMatchObject({ end: 'done', text: ANSWER })
      await have({ [token]: '0.95' })
    })

    test('a payment that nobody asks for costs nothing', async () => {
      const client = await open(driver)
      const token = await coin(server, '1')
      const [way = ''] = driver.ways
      expect(await client.say('hello', { token, way })).toMatchObject({ end: 'done', text: 'Hello.' })
      await have({ [token]: '1.00' })
    })

    test('who declines is not answered, and pays nothing', async () => {
      const client = await open(driver)
      expect((await client.say('/pay 0.05')).end).toBe('asked')
      const declined = await client.decline?.()
      if (declined && declined.text !== 'Hello.') expect(['error payment_required', 'cancelled']).toContain(declined.end)
      await settled(server)
    })

    test('what is worth nothing is refused, and the next payment is taken', async () => {
      const others = { agents: ['another'] }
      const worthless: Record<string, readonly [token: string, code: string]> = {
        expired: [expired, 'token_expired'],
        'for another agent': [await coin(server, '5', others), 'token_invalid'],
        'another currency': [await coin(server, '5', { currency: 'EUR' }), 'token_invalid'],
        'too little': [await coin(server, '0.04'), 'insufficient_balance'],
      }
      for (const [name, token] of Object.entries(await forgedCoins(server))) worthless[name] = [token, 'token_invalid']
      for (const [name, [token, code]] of Object.entries(worthless)) {
        const client = await open(driver)
        const asked = await client.say('/pay 0.05')
        const refused = await client.pay(token)
        expect(refused, name).toMatchObject({ end: 'asked', text: '', demand: { amount: '0.05', error: code } })
        // Nothing was said yet: who was refused with a status is refused with it again.
        expect(refused.status, name).toBe(asked.status)
        if (refused.events?.some(({ type }) => type === 'payment.error')) {
          const [error] = refused.events.filter(({ type }) => type === 'payment.error')
          expect(error, name).toMatchObject({ code, can_retry: true, balance_required: '0.05' })
          if (name === 'too little') expect(error).toMatchObject({ balance_current: '0.04' })
        }
        const good = await coin(server, '1')
        expect(await client.pay(good), name).toMatchObject({ end: 'done', text: ANSWER })
        await have({ [good]: '0.95' })
      }
    })

    test('two payments at once are one', async () => {
      const client = await open(driver)
      const [one, two] = [await coin(server, '1'), await coin(server, '1')]
      const { status } = await client.say('hold')
      // Where the question was a refusal, each payment comes with a request of its own, and buys an answer of its own.
      if (driver.stateless || status === 402) return
      const held = holds.held()
      const payments = [client.pay(one), client.pay(two)]
      const both = Promise.allSettled(payments)
      await held
      // The answer goes on when both have come, or the second would be a question of its own: that one is refused, or is not answered at all.
      await soon(Promise.race(payments))
      holds.letGo()
      await soon(both)
      await expect.poll(async () => [await left(server, one), await left(server, two)].toSorted()).toEqual(['0.97', '1.00'])
      await settled(server, [one, two])
    })

    test('enough money is not asked for again in the middle of an answer', async () => {
      const client = await open(driver)
      const token = await coin(server, '1')
      const [way = ''] = driver.ways
      const told = await client.say('twice', { token, way })
      expect(told).toMatchObject({ end: 'done', text: TWICE })
      if (told.events) expect(told.events.filter(({ type }) => type === 'payment.accepted')).toHaveLength(1)
      await have({ [token]: '0.92' })
    })

    test('the demo wants more money in the middle of an answer', async () => {
      const client = await open(driver)
      const token = await coin(server, '1')
      const asked = await client.say('/topup 0.05')
      expect(asked).toMatchObject({ end: 'asked', demand: { amount: '0.05' } })
      if (!driver.stateless) expect(asked.demand?.action).toBe('topup')
      if (!driver.silent) expect(asked.text).toBe('This is the first half of the answer.')
      expect(await client.pay(token)).toMatchObject({ end: 'done', text: TOPUP })
      await have({ [token]: '0.95' })
    })

    test('too little is topped up in the middle of an answer: by another token', async () => {
      const client = await open(driver)
      const [small, large] = [await coin(server, '0.04'), await coin(server, '1')]
      const [way = ''] = driver.ways
      const asked = await client.say('twice', { token: small, way })
      expect(asked.end).toBe('asked')
      if (!driver.silent) expect(asked.text).toBe('The first half')
      expect(asked.demand).toMatchObject(driver.stateless ? { amount: '0.08' } : { amount: '0.05', action: 'topup' })
      expect(await client.pay(large)).toMatchObject({ end: 'done', text: TWICE })
      await have({ [small]: driver.silent ? '0.04' : '0.01', [large]: driver.stateless ? '0.92' : '0.95' })
    })

    test('too little is topped up in the middle of an answer: the same token', async () => {
      const client = await open(driver)
      const token = await coin(server, '0.04')
      const [way = ''] = driver.ways
      const asked = await client.say('twice', { token, way })
      expect(asked.end).toBe('asked')
      await topUp(server, token, '1')
      expect(await client.pay(token)).toMatchObject({ end: 'done', text: TWICE })
      await have({ [token]: driver.stateless && !driver.silent ? '0.93' : '0.96' })
    })

    test('what is worth nothing is refused in the middle of an answer, and the next payment is taken', async () => {
      const client = await open(driver)
      const [poor, good] = [await coin(server, '0.04'), await coin(server, '1')]
      const asked = await client.say('/topup 0.05')
      const refused = await client.pay(poor)
      expect(refused).toMatchObject({ end: 'asked', demand: { amount: '0.05', error: 'insufficient_balance' } })
      // Who was asked within an answer is asked there again, and not by a status.
      expect(refused.status).toBe(asked.status)
      expect(await client.pay(good)).toMatchObject({ end: 'done', text: TOPUP })
      await have({ [poor]: '0.04', [good]: '0.95' })
    })

    test('who vanishes in the middle pays for what was said', async () => {
      const client = await open(driver)
      const token = await coin(server, '1')
      const [way = ''] = driver.ways
      const held = holds.held()
      client.say('hold', { token, way }).catch(() => undefined)
      await held
      await client.vanish()
      holds.letGo()
      await have({ [token]: '0.97' })
    })

    test('an answer that fails costs nothing', async () => {
      const client = await open(driver)
      const token = await coin(server, '1')
      const [way = ''] = driver.ways
      const told = await client.say('fail', { token, way })
      expect(told.end).toMatch(/^error/)
      await have({ [token]: '1.00' })
    })

    test('a question that is stopped costs nothing', async () => {
      const client = await open(driver)
      if (!client.cancel) return
      await client.say('/pay 0.05')
      expect((await client.cancel()).end).toBe('cancelled')
      await settled(server)
    })

    test('a payment for nobody is refused', async () => {
      const client = await open(driver)
      const token = await coin(server, '1')
      if (client.payNobody) expect(await client.payNobody(token)).toBe('not_found')
      await have({ [token]: '1.00' })
    })

    test('two payments that differ in one request are refused', async () => {
      if (!driver.twoHeaders) return
      const tokens = [await coin(server, '1'), await coin(server, '1')] as const
      expect(await driver.twoHeaders(server.url, tokens)).toBe(400)
      await have({ [tokens[0]]: '1.00', [tokens[1]]: '1.00' })
    })
  })
}

/** The task, or the first second of it. */
function soon(task: Promise<unknown>): Promise<unknown> {
  return Promise.race([task.catch(() => undefined), new Promise((resolve) => setTimeout(resolve, 1000))])
}
