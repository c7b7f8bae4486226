/** What agents charge in code, over a socket: who pays, when, and how often. */
import { describe, expect, test } from 'vitest'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import type { Turn } from '../../src/core/ports/agent.ts'
import { accountOf } from '../../src/payments/accounts.ts'
import { UampError } from '../../src/protocol/errors.ts'
import { coin, earned, left, locked, settled } from '../support/money.ts'
import { startServer } from '../support/server.ts'
import { isEnd, say, textOf } from '../support/talk.ts'
import { overWebSocket, type Heard, type Wire } from '../support/wire.ts'

type Run = (turn: Turn) => AsyncGenerator<string, void>

/** A server with one agent, somebody with a token, and a socket between them. */
async function shop(run: Run, { amount = '1', create = {}, ...options }: { amount?: string; create?: object; limits?: object } = {}) {
  const server = await startServer(defineAgent('shop', run), options)
  const token = await coin(server, amount)
  const wire = await overWebSocket(server.url)
  await wire.open({ payment_token: token, ...create })
  return { server, token, wire }
}

/** Asks, without waiting for the answer. */
async function begin(wire: Wire, text: string): Promise<void> {
  await wire.send({ type: 'input.text', text })
  await wire.send({ type: 'response.create' })
}

/** Waits for the end of the answer, and returns all that was heard. */
async function ended(wire: Wire): Promise<readonly Heard[]> {
  await wire.next(isEnd)
  return wire.heard.slice(0, wire.heard.findLastIndex(isEnd) + 1)
}

const typesOf = (wire: Wire): string[] => wire.heard.map(({ type }) => type).filter((type) => type.startsWith('payment.'))

describe('a charge', () => {
  test('is taken from the token of the session, once for each answer', async () => {
    const { server, token, wire } = await shop(async function* (turn) {
      await turn.charge({ amount: '0.10' })
      yield 'thanks'
    })
    expect(textOf(await say(wire, 'one'))).toBe('thanks')
    expect(textOf(await say(wire, 'two'))).toBe('thanks')
    await wire.send({ type: 'ping' })
    await wire.next('pong')
    expect(typesOf(wire)).toEqual(['payment.accepted', 'payment.balance', 'payment.accepted', 'payment.balance'])
    expect(await left(server, token)).toBe('0.80')
    expect(await earned(server, 'shop')).toBe('0.20')
    await settled(server, [token])
  })

  test('that costs less in the end takes less, and never more than was charged', async () => {
    const { server, token, wire } = await shop(async function* (turn) {
      const one = await turn.charge({ amount: '0.10' })
      const two = await turn.charge({ amount: '0.10' })
      one.settle('0.03')
      two.settle('99')
      yield 'thanks'
    })
    await say(wire, 'one')
    expect(await left(server, token)).toBe('0.87')
  })

  test('of an answer that fails costs nothing', async () => {
    const { server, token, wire } = await shop(async function* (turn) {
      await turn.charge({ amount: '0.10' })
      yield 'half of'
      throw new Error('broken')
    })
    expect((await say(wire, 'one')).at(-1)?.type).toBe('response.error')
    expect(await left(server, token)).toBe('1.00')
    await settled(server, [token])
  })

  test('of an answer that its reader stops is due once the agent has spoken, and not before', async () => {
    const never = new Promise<void>(() => undefined)
    const { server, token, wire } = await shop(async function* (turn) {
      await turn.charge({ amount: '0.10' })
      if (turn.messages.at(-1)?.content === 'speak') yield 'well'
      else await turn.charge({ amount: '0.01' })
      await never
    })
    const stopped = async (text: string): Promise<void> => {
      await begin(wire, text)
      await wire.next(text === 'speak' ? 'response.delta' : 'payment.accepted')
      await wire.send({ type: 'response.cancel' })
      await wire.next(isEnd)
    }
    await stopped('wait')
    expect(await left(server, token)).toBe('1.00')
    await stopped('speak')
    await expect.poll(() => left(server, token)).toBe('0.90')
    await settled(server, [token])
  })

  test('of an answer that fails because its reader left a question open is due, as far as the agent spoke', async () => {
    const { server, token, wire } = await shop(async function* (turn) {
      await turn.charge({ amount: '0.10' })
      yield 'well'
      await turn.ask('tool.call', { name: 'look', arguments: '{}' }, { timeoutMs: 1 })
    })
    await begin(wire, 'hi')
    expect(await wire.next(isEnd)).toMatchObject({ type: 'response.error', error: { code: 'timeout' } })
    await expect.poll(() => left(server, token)).toBe('0.90')
    await settled(server, [token])
  })

  const limits = { turnTimeoutMs: 500 }
  const until = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))
  test.each<[string, Run, string]>([
    [
      'is due if a question is open',
      async function* (turn) {
        await turn.charge({ amount: '0.10' })
        yield 'well'
        await turn.ask('tool.call', { name: 'look', arguments: '{}' })
      },
      '0.90',
    ],
    [
      'is due if a payment is missing',
      async function* (turn) {
        await turn.charge({ amount: '0.10' })
        yield 'well'
        await turn.charge({ amount: '2' })
      },
      '0.90',
    ],
    [
      'is due if most of the time went by in questions',
      async function* (turn) {
        await turn.charge({ amount: '0.10' })
        yield 'well'
        await turn.ask('tool.call', { name: 'look', arguments: '{}' }, { timeoutMs: 400 }).catch(() => undefined)
        await until(5_000)
      },
      '0.90',
    ],
    [
      'is given back if the agent took the time',
      async function* (turn) {
        await turn.charge({ amount: '0.10' })
        yield 'well'
        await until(5_000)
      },
      '1.00',
    ],
  ])('of an answer whose time is over %s', async (_, run, rest) => {
    const { server, token, wire } = await shop(run, { limits })
    await begin(wire, 'hi')
    expect(await wire.next(isEnd)).toMatchObject({ type: 'response.error', error: { code: 'timeout' } })
    await expect.poll(() => left(server, token)).toBe(rest)
    await settled(server, [token])
  })

  test('of two at once is locked for both', async () => {
    const { server, token, wire } = await shop(
      async function* (turn) {
        const both = await Promise.allSettled([turn.charge({ amount: '0.60' }), turn.charge({ amount: '0.60', timeoutMs: 200 })])
        yield both.map(({ status }) => status).join(' ')
      },
      { amount: '1' },
    )
    const events = await say(wire, 'one')
    expect(textOf(events)).toBe('fulfilled rejected')
    expect(typesOf(wire)).toContain('payment.required')
    expect(await left(server, token)).toBe('0.40')
  })

  test('that is not topped up in time ends the answer, with what was done and paid until then', async () => {
    const { server, token, wire } = await shop(
      async function* (turn) {
        await turn.charge({ amount: '0.10' })
        yield 'one half'
        await turn.charge({ amount: '0.10', timeoutMs: 50 })
        yield ' and the other'
      },
      { amount: '0.15' },
    )
    const events = await say(wire, 'one')
    expect(textOf(events)).toBe('one half')
    expect(typesOf(wire)).toContain('payment.required')
    const end = events.find(({ type }) => type === 'response.error')
    expect(end).toMatchObject({ error: { code: 'payment_required', details: { reason: 'timeout' } } })
    expect([await left(server, token), await earned(server, 'shop')]).toEqual(['0.05', '0.10'])
    await settled(server, [token])
    // Nobody waits any more.
    const late = await wire.send({ type: 'payment.submit', payment: { scheme: 'token', token: await coin(server, '1') } })
    expect(late?.code).toBe('not_found')
  })

  test('in two currencies is paid from two tokens', async () => {
    const { server, token, wire } = await shop(async function* (turn) {
      await turn.charge({ amount: '0.10' })
      await turn.charge({ amount: '2', currency: 'EUR' })
      yield 'thanks'
    })
    const euros = await coin(server, '5', { currency: 'EUR' })
    await begin(wire, 'one')
    expect(await wire.next('payment.required')).toMatchObject({
      requirements: { amount: '2.00', currency: 'EUR' },
      extra: { action: 'topup' },
    })
    await wire.send({ type: 'payment.submit', payment: { scheme: 'token', token: euros } })
    expect(textOf(await ended(wire))).toBe('thanks')
    expect([await left(server, token), await left(server, euros)]).toEqual(['0.90', '3.00'])
    await settled(server, [token, euros])
  })

  test.each(['-1', '1e400', 'NaN', '', '0.1234567890', '1'.repeat(17), '0x10', ' 1'])('of %j is a mistake of the agent', async (amount) => {
    const { server, token, wire } = await shop(async function* (turn) {
      await turn.charge({ amount })
      yield 'thanks'
    })
    expect((await say(wire, 'one')).at(-1)).toMatchObject({ type: 'response.error', error: { code: 'internal' } })
    expect(await left(server, token)).toBe('1.00')
  })

  test('takes no more than the client offered, and asks for the rest', async () => {
    const { server, wire } = await shop(
      async function* (turn) {
        await turn.charge({ amount: '0.10' })
        await turn.charge({ amount: '0.10' })
        yield 'thanks'
      },
      { create: { payment_token: undefined } },
    )
    const token = await coin(server, '1')
    await begin(wire, 'one')
    await wire.next('payment.required')
    await wire.send({ type: 'payment.submit', payment: { scheme: 'token', token, amount: '0.15' } })
    expect(await wire.next('payment.required')).toMatchObject({ requirements: { amount: '0.10' }, extra: { action: 'topup' } })
    expect(await locked(server, token)).toBe('0.10')
    await wire.send({ type: 'payment.submit', payment: { scheme: 'token', token, amount: '0.10' } })
    expect(textOf(await ended(wire))).toBe('thanks')
    expect(await left(server, token)).toBe('0.80')
  })

  test('of an account is taken without a question', async () => {
    const server = await startServer(
      defineAgent('shop', async function* (turn) {
        await turn.charge({ amount: '0.10' })
        yield 'thanks'
      }),
      { tokens: { ann: 'secret-of-ann-1234567890' } },
    )
    const account = accountOf.principal('ann', 'USD')
    await server.ledger.transfer('default', {
      kind: 'deposit',
      from: accountOf.outside('USD'),
      to: account,
      amount: 150_000_000n,
      currency: 'USD',
    })
    const wire = await overWebSocket(server.url, { token: 'secret-of-ann-1234567890' })
    await wire.open()
    expect(textOf(await say(wire, 'one'))).toBe('thanks')
    expect(typesOf(wire)).not.toContain('payment.required')
    await begin(wire, 'two')
    expect(await wire.next('payment.error')).toMatchObject({
      code: 'insufficient_balance',
      balance_required: '0.10',
      balance_current: '0.05',
      can_retry: true,
    })
    await wire.next('payment.required')
    await wire.send({ type: 'payment.submit', payment: { scheme: 'declined' } })
    expect((await ended(wire)).at(-1)).toMatchObject({ type: 'response.error', error: { code: 'payment_required' } })
    await settled(server)
  })
})

describe('an agent that throws its price', () => {
  const wants = (details: object): UampError => new UampError('payment_required', 'Pay first', { details: { ...details } })

  test('is paid, and run again, and what it charged before is not charged twice', async () => {
    let runs = 0
    const { server, token, wire } = await shop(async function* (turn) {
      await turn.charge({ amount: '0.10', key: 'mine' })
      if (runs++ === 0) throw wants({ amount: '0.05', currency: 'USD' })
      yield 'thanks'
    })
    expect(textOf(await say(wire, 'one'))).toBe('thanks')
    expect(await left(server, token)).toBe('0.85')
    await settled(server, [token])
  })

  test('every time is not run for ever, and costs nothing', async () => {
    const { server, token, wire } = await shop(async function* () {
      throw wants({ amount: '0.05' })
    })
    expect((await say(wire, 'one')).at(-1)).toMatchObject({ type: 'response.error', error: { code: 'payment_required' } })
    expect(await left(server, token)).toBe('1.00')
  })
})

describe('money that is handed on', () => {
  test('is a token for the other agent, and what is left of it comes back', async () => {
    const texts: string[] = []
    const { server, token, wire } = await shop(async function* (turn) {
      await turn.charge({ amount: '0.10' })
      const { payment, giveBack } = await turn.handOn({ agent: 'other', amount: '0.30' })
      texts.push(payment.token ?? '')
      yield `${payment.amount}`
      await giveBack()
    })
    expect(textOf(await say(wire, 'one'))).toBe('0.30')
    const claims = JSON.parse(atob(texts[0]?.split('.')[1] ?? '')) as Heard
    expect(claims).toMatchObject({ aud: ['other'], max_depth: 4, payment: { balance: '0.30' } })
    expect(await left(server, token)).toBe('0.90')
    await settled(server, [token])
  })

  test('is refused beyond the depth and beyond the money of its token, and the client is asked', async () => {
    const { server, wire } = await shop(async function* (turn) {
      await turn.handOn({ agent: 'other', amount: '0.30' })
      yield 'handed on'
    })
    for (const [amount, options, code] of [
      ['5', { maxDepth: 0 }, 'token_invalid'],
      ['0.29', {}, 'insufficient_balance'],
    ] as const) {
      const poor = await coin(server, amount, options)
      await wire.send({ type: 'session.update', session: {}, payment_token: poor })
      await begin(wire, 'one')
      expect(await wire.next('payment.error')).toMatchObject({ code })
      await wire.send({ type: 'payment.submit', payment: { scheme: 'declined' } })
      expect((await ended(wire)).at(-1)).toMatchObject({ type: 'response.error', error: { code: 'payment_required' } })
    }
    await settled(server)
  })
})
