import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { ratesOf } from '../../src/core/basics/price.ts'
import type { Draft } from '../../src/protocol/events.ts'
import type { Usage } from '../../src/protocol/usage.ts'
import { ask, complete, DATA, startPaid, usageIn } from '../support/paying.ts'
import { json, type Wire } from '../support/raw.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'

const done = (usage?: Usage): Draft => ({
  type: 'response.done',
  response: { id: '', status: 'completed', output: [], ...(usage && { usage }) },
})
const delta = (usage: Usage): Draft => ({ type: 'usage.delta', delta: usage })

/** A dollar a token in, a half from the cache, two out: a cent is a hundredth of a token. */
const RATES = { input: '1000000', cached: '500000', output: '2000000', reserve: '50' }
const USED: Usage = { input_tokens: 10, cached_tokens: 4, output_tokens: 3 }
const COSTS = 6 + 4 / 2 + 3 * 2

const units = (dollars: number): bigint => BigInt(Math.round(dollars * 1000)) * 1_000_000n

const agents = [
  defineAgent(
    'call',
    async function* () {
      yield 'Hi'
    },
    { price: { call: '0.25' } },
  ),
  defineAgent(
    'deltas',
    async function* () {
      yield 'Hi'
      yield delta(USED)
    },
    { price: RATES },
  ),
  defineAgent(
    'pieces',
    async function* () {
      yield delta({ input_tokens: 10, cached_tokens: 4 })
      yield 'Hi'
      yield delta({ output_tokens: 3 })
    },
    { price: RATES },
  ),
  defineAgent(
    'end',
    async function* () {
      yield 'Hi'
      yield done(USED)
    },
    { price: RATES },
  ),
  defineAgent(
    'both',
    async function* () {
      yield delta(USED)
      yield 'Hi'
      yield done(USED)
    },
    { price: RATES },
  ),
  defineAgent(
    'beyond',
    async function* () {
      yield 'Hi'
      yield delta(USED)
      yield delta(USED)
    },
    { price: { ...RATES, reserve: '0.01', call: '1' } },
  ),
  defineAgent(
    'untold',
    async function* () {
      yield 'Hi there'
    },
    { price: { output: '1000000', reserve: '5' } },
  ),
  defineAgent(
    'failing',
    async function* () {
      yield 'Hi'
      yield delta(USED)
      throw new Error('broken')
    },
    { price: RATES },
  ),
  defineAgent(
    'costly',
    async function* () {
      yield 'Hi'
      yield delta({ ...USED, cost: { total_cost: 99, currency: 'USD' } })
    },
    { price: { call: '0.1' } },
  ),
]

const CASES = [
  { agent: 'call', cost: 0.25, verifies: 'prices.call' },
  { agent: 'deltas', cost: COSTS, verifies: 'prices.usage' },
  { agent: 'pieces', cost: COSTS, verifies: 'prices.told-once' },
  { agent: 'end', cost: COSTS, verifies: 'prices.told-once' },
  { agent: 'both', cost: COSTS, verifies: 'prices.told-once' },
  { agent: 'beyond', cost: 1 + 2 * COSTS, verifies: 'prices.reserve' },
  { agent: 'untold', cost: 2, verifies: 'prices.untold' },
  { agent: 'costly', cost: 0.1, verifies: 'prices.cost' },
] as const

describe.each(DATA)('on %s', (data) => {
  for (const { agent, cost, verifies: id } of CASES) {
    for (const stream of [false, true]) {
      verifies([id, 'prices.cost'], `${agent} is charged over completions, ${stream ? 'streamed' : 'in one piece'}`, async () => {
        const server = await startPaid(agents, data)
        const token = await server.token('100')
        const usage = await usageIn(await complete(server.url, agent, { token: token.text, stream }))
        expect(usage).toMatchObject({ cost: { total_cost: cost, currency: 'USD' } })
        expect(await server.earned(agent)).toBe(units(cost))
        expect(await token.left()).toBe(units(100 - cost))
        expect(await token.locked()).toBe(0n)
      })
    }

    verifies([id, 'prices.cost'], `${agent} is charged over events`, async () => {
      const server = await startPaid(agents, data)
      const token = await server.token('100')
      const events = await ask(server.url, agent, { token: token.text })
      const end = events.find(({ type }) => type === 'response.done') as { response?: { usage?: Usage; extensions?: unknown } } | undefined
      expect(end?.response?.usage?.cost).toMatchObject({ total_cost: cost })
      expect(end?.response?.extensions).toMatchObject({ uamp: { payments: [{ amount: cost.toFixed(2) }] } })
      const told = events.filter(({ type }) => type === 'usage.delta') as unknown as { delta: Usage }[]
      expect(told.reduce((sum, event) => sum + (event.delta.cost?.total_cost ?? 0), 0)).toBeCloseTo(cost, 12)
      expect(await server.earned(agent)).toBe(units(cost))
      expect((await server.ledger.check()).problems).toEqual([])
    })
  }

  verifies('prices.call', 'an agent that fails costs nothing', async () => {
    const server = await startPaid(agents, data)
    const token = await server.token('100')
    const response = await complete(server.url, 'failing', { token: token.text })
    expect(response.status).toBeGreaterThanOrEqual(500)
    expect(await token.left()).toBe(units(100))
    expect(await server.earned('failing')).toBe(0n)
  })

  verifies('prices.reserve', 'a reserve larger than the balance is asked for, and nothing stays locked', async () => {
    const server = await startPaid(agents, data)
    const token = await server.token('20')
    const response = await complete(server.url, 'deltas', { token: token.text })
    expect(response.status).toBe(402)
    expect(await token.left()).toBe(units(20))
    expect(await token.locked()).toBe(0n)
  })

  verifies('prices.reserve', 'an answer whose usage is more than the token holds is paid for as far as it was charged', async () => {
    const server = await startPaid(agents, data)
    const token = await server.token('20')
    await (await complete(server.url, 'beyond', { token: token.text })).text()
    // What an agent earns is there once it is stored.
    await expect.poll(async () => (await token.left()) + (await server.earned('beyond'))).toBe(units(20))
    expect(await token.locked()).toBe(0n)
    expect((await server.ledger.check()).problems).toEqual([])
  })
})

verifies('prices.free', 'free calls cost nothing, and are counted for each caller', async () => {
  const agent = defineAgent(
    'some-free',
    async function* () {
      yield 'Hi'
    },
    { price: { call: '0.25', free: { calls: 2, per: 'month' } } },
  )
  const server = await startPaid(agent, 'memory', { tokens: { alice: 'a-secret-of-alice-1', bob: 'a-secret-of-bob-123' } })
  const call = async (secret: string): Promise<number> =>
    (
      await fetch(`${server.url}/v1/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${secret}` },
        body: JSON.stringify({ model: 'some-free', messages: [{ role: 'user', content: 'Hi' }] }),
      })
    ).status
  const statuses = []
  for (const secret of ['a-secret-of-alice-1', 'a-secret-of-alice-1', 'a-secret-of-alice-1', 'a-secret-of-bob-123'])
    statuses.push(await call(secret))
  expect(statuses).toEqual([200, 200, 402, 200])
})

verifies('prices.free', 'a call is free to its end, also if the server is started again while its tool runs', async () => {
  const agent = defineAgent(
    'guide',
    async function* (turn) {
      const { result } = await turn.ask('tool.call', { name: 'weather', arguments: '{}' })
      yield `It is ${result}.`
    },
    { price: { call: '0.25', free: { calls: 1, per: 'month' } } },
  )
  const data = mkdtempSync(join(tmpdir(), 'uamp-free-'))
  onTestFinished(() => rmSync(data, { recursive: true, force: true }))
  const secret = 'a-secret-of-alice-1'
  const headers = { authorization: `Bearer ${secret}` }
  const about = { model: 'guide', tools: [{ type: 'function', name: 'weather', parameters: { type: 'object', properties: {} } }] }
  const before = await startServer(agent, { data, tokens: { alice: secret } })
  const first: Wire = await json(`${before.url}/v1/responses`, { ...about, input: 'Hi' }, { headers })
  await before.close({ graceMs: 0 })
  const { url } = await startServer(agent, { data, tokens: { alice: secret } })
  const [{ call_id }] = first['output']
  const input = [{ type: 'function_call_output', call_id, output: 'sunny' }]
  const second: Wire = await json(`${url}/v1/responses`, { ...about, input, previous_response_id: first['id'] }, { headers })
  expect(second['output'][0].content[0].text).toBe('It is sunny.')
  await expect(json(`${url}/v1/responses`, { ...about, input: 'Hi' }, { headers })).rejects.toThrow('402')
})

verifies('prices.untold', 'a reader who leaves pays for what was said, within the reserve', async () => {
  let left: () => void = () => undefined
  const gone = new Promise<void>((resolve) => (left = resolve))
  const agent = defineAgent(
    'long',
    async function* (turn) {
      yield 'x'.repeat(400)
      await new Promise((resolve) => turn.signal.addEventListener('abort', resolve, { once: true }))
      left()
    },
    { price: { input: '1000000', output: '1000000', reserve: '500' } },
  )
  const server = await startPaid(agent)
  const token = await server.token('1000')
  const stop = new AbortController()
  const response = await fetch(`${server.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-payment': token.text },
    body: JSON.stringify({ model: 'long', stream: true, messages: [{ role: 'user', content: 'Hello' }] }),
    signal: stop.signal,
  })
  const reader = response.body?.getReader()
  for (let heard = ''; !heard.includes('xxx');) heard += new TextDecoder().decode((await reader?.read())?.value)
  stop.abort()
  await gone
  // A hundred tokens said, and two heard.
  await expect.poll(() => server.earned('long')).toBe(units(102))
  expect(await token.left()).toBe(units(1000 - 102))
})

describe('what usage costs', () => {
  const rates = ratesOf({ input: '3', cached: '0.3', output: '15', audioSecond: '0.000000001' })
  test.each([
    ['nothing', {}, 0n],
    ['one token', { input_tokens: 1 }, 3_000n],
    [
      'the exact fields count first',
      { input_tokens: 999, input_uncached: 1, cache_read: 1, cache_write: 1, output: 1, output_tokens: 999 },
      21_300n,
    ],
    ['a cache beside the input', { input_tokens: 1, cache_read: 5 }, 3_000n + 1_500n],
    ['one rounding of tokens and seconds', { input_tokens: 0, audio: { input_seconds: 0.4, output_seconds: 0.4 } }, 1n],
    [
      'counts that are none',
      { input_tokens: -5, output_tokens: NaN, audio: { input_seconds: -1, output_seconds: Infinity } },
      4_000_000_000n,
    ],
    ['floats of seconds', { audio: { input_seconds: 1.1, output_seconds: 2.2 } }, 4n],
  ] as const)('%s', (_, usage, cost) => {
    expect(rates.cost(usage as Usage)).toBe(cost)
  })
})
