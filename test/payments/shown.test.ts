import { expect } from 'vitest'
import { Agent } from '../../src/agents/agent.ts'
import { priceWords } from '../../src/core/basics/shown-price.ts'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { toolRunner } from '../../src/core/tools/tool-loop.ts'
import { remoteEvents } from '../../src/remotes/events/index.ts'
import { ask, complete, startPaid } from '../support/paying.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'

const search = { name: 'search', run: () => 'found' }
const priced = new Agent({
  name: 'priced',
  price: { call: '0.01', input: '3', cached: '0.3', output: '15', tools: { search: '0.02' } },
  tools: [search],
})
const SHOWN = {
  currency: 'USD',
  call: '0.01',
  input: '3',
  cached: '0.3',
  output: '15',
  tools: { search: { amount: '0.02', currency: 'USD' } },
}

verifies('prices.shown', 'every protocol shows the same price', async () => {
  const { url } = await startServer(priced)
  const get = async (path: string): Promise<Record<string, unknown>> => (await (await fetch(url + path)).json()) as Record<string, unknown>
  const capabilities = { extensions: { uamp: { price: SHOWN } } }
  expect(await get('/capabilities')).toMatchObject(capabilities)
  expect(await get('/ag-ui/capabilities')).toMatchObject({ custom: { uamp: { capabilities } } })
  expect(await get('/v1/models/priced')).toMatchObject({
    pricing: { prompt: '0.000003', completion: '0.000015', request: '0.01', input_cache_read: '0.0000003', uamp: SHOWN },
  })
  for (const path of ['/.well-known/agent-card.json', '/.well-known/agent.json']) {
    const card = (await get(path)) as { capabilities: { extensions: { uri: string; params?: unknown }[] } }
    expect(card.capabilities.extensions.find(({ uri }) => uri.includes('price'))?.params).toEqual(SHOWN)
  }
  expect(priceWords(priced)).toBe('$0.01 a call; $3 in, $0.3 cached, $15 out for a million tokens; tools: search $0.02')
})

verifies('prices.tools', 'tools are charged by their prices, and those that fail are not', async () => {
  const tools = [
    { ...search, price: { amount: '0.02' } },
    { name: 'broken', price: { amount: '5' }, run: () => Promise.reject(new Error('broken')) },
    { name: 'measured', price: { lock: () => '1', settle: (result: string) => `0.0${result.length}` }, run: () => 'abc' },
  ]
  const agent = defineAgent(
    'worker',
    async function* (turn) {
      const run = toolRunner(turn, { tools })
      for (const { name } of tools) yield* run([{ id: `call-${name}`, name, arguments: '{}' }])
      yield 'Done'
    },
    { price: { call: '0.10' } },
  )
  const server = await startPaid(agent)
  const token = await server.token('10')
  const events = await ask(server.url, 'worker', { token: token.text })
  const end = events.find(({ type }) => type === 'response.done')
  expect(end).toMatchObject({ response: { usage: { cost: { total_cost: 0.15 } } } })
  expect(await server.earned('worker')).toBe(150_000_000n)
})

verifies('prices.resold', 'an agent elsewhere is offered at a price of its own', async () => {
  const there = await startServer(
    defineAgent('far', async function* () {
      yield 'Hi'
      yield { type: 'usage.delta', delta: { output_tokens: 2 } }
    }),
  )
  const server = await startPaid(remoteEvents({ name: 'near', url: there.url, price: { output: '1000000' } }))
  const token = await server.token('10')
  expect((await complete(server.url, 'near')).status).toBe(402)
  const response = await complete(server.url, 'near', { token: token.text })
  expect(await response.json()).toMatchObject({ usage: { cost: { total_cost: 2 } } })
  expect(await server.earned('near')).toBe(2_000_000_000n)
})
