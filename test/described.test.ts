/** What an agent says of itself: the abilities that it provides, the paths of its own routes, and the widgets that its client shares. */
import { expect, test } from 'vitest'
import { Agent } from '../src/agents/agent.ts'
import { llmAgent } from '../src/agents/llm/index.ts'
import { defineAgent } from '../src/core/agent-kit/define-agent.ts'
import { text } from '../src/core/agent-kit/drafts.ts'
import { http, websocket } from '../src/core/agent-kit/own-routes.ts'
import type { Skill } from '../src/core/ports/skill.ts'
import type { Capabilities } from '../src/protocol/capabilities.ts'
import { answering } from './agents/provider.ts'
import { startServer } from './support/server.ts'
import { verifies } from './support/verifies.ts'
import { overWebSocket } from './support/wire.ts'

const search: Skill = {
  name: 'search',
  tools: [{ name: 'web_search', run: () => 'found' }],
  routes: () => [http('/api/search', {}, async () => ({ hits: 0 })), websocket('/ws/stream', async () => undefined)],
}
const clock = { name: 'clock', run: () => '12:00' }

const capabilities = async (url: string, name: string): Promise<Capabilities> =>
  (await (await fetch(`${url}/agents/${name}/capabilities`)).json()) as Capabilities

const said = { provides: ['search', 'clock'], endpoints: ['/api/search', '/ws/stream'] }

verifies('uamp:capabilities:provides', 'an agent tells what it provides and where its own routes are', async () => {
  const composed = new Agent({ name: 'composed', skills: [search], tools: [clock] })
  const model = llmAgent({ name: 'model', model: answering(() => []), skills: [search], tools: [clock] })
  const { url } = await startServer([composed, model])
  for (const name of ['composed', 'model']) {
    expect(await capabilities(url, name)).toMatchObject(said)
    const wire = await overWebSocket(`${url}/agents/${name}`)
    await wire.open()
    expect((await wire.next(({ type }) => type === 'capabilities'))['capabilities']).toMatchObject(said)
  }
  // The path is below the agent's own address.
  expect(await (await fetch(`${url}/agents/composed/api/search`)).json()).toEqual({ hits: 0 })
})

test('a session at the root hears of them before any request has named the agent', async () => {
  const { url } = await startServer([new Agent({ name: 'other', skills: [search] }), new Agent({ name: 'one', tools: [clock] })])
  const wire = await overWebSocket(url)
  await wire.open({ agent: 'other' })
  expect((await wire.next(({ type }) => type === 'capabilities'))['capabilities']).toMatchObject({ endpoints: said.endpoints })
})

test('a skill that is added while the agent is served brings its own', async () => {
  const agent = new Agent({ name: 'growing', tools: [clock], capabilities: { endpoints: ['/by-hand'] } })
  const { url } = await startServer(agent)
  expect(await capabilities(url, 'growing')).toMatchObject({ provides: ['clock'], endpoints: ['/by-hand'] })
  agent.addSkill(search)
  expect(await capabilities(url, 'growing')).toMatchObject({ provides: said.provides, endpoints: ['/by-hand', ...said.endpoints] })
})

test('an agent made from a generator provides its abilities, else its tools, else says nothing', async () => {
  const run = async function* () {
    yield text('hello')
  }
  const ability = { id: 'greet', name: 'Greeting', description: 'Says hello', tags: [] }
  expect(defineAgent('a', run, { abilities: [ability], tools: [clock] }).capabilities.provides).toEqual(['greet'])
  expect(defineAgent('a', run, { tools: [clock] }).capabilities.provides).toEqual(['clock'])
  expect(defineAgent('a', run, { tools: [clock], capabilities: { provides: ['mine'] } }).capabilities.provides).toEqual(['mine'])
  expect(defineAgent('a', run).capabilities).not.toHaveProperty('provides')
})

verifies('uamp:capabilities:widgets', 'a client hears only of the widgets that it has', async () => {
  const agent = new Agent({ name: 'drawing', capabilities: { widgets: ['chart', 'table', 'form'] } })
  const { url } = await startServer(agent)
  const heard = async (client: object): Promise<unknown> => {
    const wire = await overWebSocket(url)
    await wire.open(client)
    return (await wire.next(({ type }) => type === 'capabilities'))['capabilities'].widgets
  }
  const me = { id: 'me', provider: 'me', modalities: ['text'] }
  expect(await heard({})).toEqual(['chart', 'table', 'form'])
  expect(await heard({ client_capabilities: me })).toEqual(['chart', 'table', 'form'])
  expect(await heard({ client_capabilities: { ...me, widgets: ['table', 'map'] } })).toEqual(['table'])
  expect(await heard({ client_capabilities: { ...me, widgets: [] } })).toEqual([])
})
