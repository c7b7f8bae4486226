import { expect, onTestFinished, test } from 'vitest'
import { Agent } from '../../agents/agent.ts'
import { UampError } from '../../protocol/errors.ts'
import type { ServerEvent } from '../../protocol/events.ts'
import { memoryStore } from '../../stores/memory.ts'
import { AgentRegistry } from '../engine/agent-registry.ts'
import { createGateway } from '../engine/gateway.ts'
import type { AgentPort } from '../ports/agent.ts'
import { defineAgent } from './define-agent.ts'
import { exchange } from './exchange.ts'
import { wrap, type Layer } from './wrap.ts'

const principal = { tenant: 't', id: 'p', scopes: ['*'] }

function gatewayOf(agent: AgentPort) {
  const agents = new AgentRegistry()
  agents.add(agent)
  const gateway = createGateway({ agents, store: memoryStore() })
  onTestFinished(() => gateway.close())
  return gateway
}

async function ask(agent: AgentPort, content = 'go'): Promise<{ text: string; end: ServerEvent | undefined }> {
  const heard: ServerEvent[] = []
  for await (const event of exchange(gatewayOf(agent), { agent: agent.name, principal, messages: [{ role: 'user', content }] })) {
    heard.push(event)
  }
  const text = heard.map((event) => (event.type === 'response.delta' && event.delta.type === 'text' ? event.delta.text : '')).join('')
  return { text, end: heard.at(-1) }
}

const echo = defineAgent('echo', async function* (turn) {
  yield `${turn.config.instructions ?? 'no orders'}: ${turn.messages.at(-1)?.content}`
})

test('the first layer is the outermost, and each may say something before and after', async () => {
  const around = (mark: string): Layer =>
    async function* (_turn, next) {
      yield `<${mark}>`
      yield* next()
      yield `</${mark}>`
    }
  expect((await ask(wrap(echo, around('a'), around('b')))).text).toBe('<a><b>no orders: go</b></a>')
})

test('a layer changes the turn for those inside, and only for them', async () => {
  const brief: Layer = (turn, next) => next({ config: { ...turn.config, instructions: 'Be brief' } })
  const tell: Layer = async function* (turn, next) {
    yield* next()
    yield ` (${turn.config.instructions ?? 'no orders'})`
  }
  expect((await ask(wrap(echo, tell, brief))).text).toBe('Be brief: go (no orders)')
})

test('a layer may answer itself, change what is said, and catch a failure', async () => {
  const guard: Layer = async function* (turn, next) {
    if (turn.messages.at(-1)?.content === 'secret') yield 'No.'
    else yield* next()
  }
  const loud: Layer = async function* (_turn, next) {
    for await (const said of next()) yield typeof said === 'string' ? said.toUpperCase() : said
  }
  const wrapped = wrap(echo, guard, loud)
  expect((await ask(wrapped, 'secret')).text).toBe('No.')
  expect((await ask(wrapped, 'hi')).text).toBe('NO ORDERS: HI')
  const broken = defineAgent('broken', async function* () {
    yield 'half '
    throw new UampError('provider_error', 'gone')
  })
  const rescue: Layer = async function* (_turn, next) {
    try {
      yield* next()
    } catch (error) {
      yield `sorry, ${UampError.from(error).message}`
    }
  }
  expect(await ask(wrap(broken, rescue))).toMatchObject({ text: 'half sorry, gone', end: { type: 'response.done' } })
})

test('a failure of a layer is one of the response, and the layers around it clean up', async () => {
  const cleaned: string[] = []
  const outer: Layer = async function* (_turn, next) {
    try {
      yield* next()
    } finally {
      cleaned.push('outer')
    }
  }
  const refuse: Layer = () => {
    throw new UampError('forbidden', 'not today')
  }
  expect((await ask(wrap(echo, outer, refuse))).end).toMatchObject({ type: 'response.error', error: { code: 'forbidden' } })
  expect(cleaned).toEqual(['outer'])
})

test('a cancel runs the finally of the agent and of every layer, the innermost first', async () => {
  const cleaned: string[] = []
  const layer = (name: string): Layer =>
    async function* (_turn, next) {
      try {
        yield* next()
      } finally {
        cleaned.push(name)
      }
    }
  const endless = defineAgent('endless', async function* ({ signal }) {
    try {
      yield 'a'
      await new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('stopped'))))
    } finally {
      cleaned.push('agent')
    }
  })
  const gateway = gatewayOf(wrap(endless, layer('outer'), layer('inner')))
  const config = { modalities: ['text'] }
  const init = { transport: 'test', agent: 'endless', principal, config, duplex: true, persist: false, onDetach: 'cancel' as const }
  const session = await gateway.open(init)
  const reader = session.read({ after: 0 })
  await session.send({ type: 'response.create', event_id: 'e1' })
  for await (const batch of reader) {
    const types = [...batch].map(({ type }) => type)
    if (types.includes('response.delta')) await session.send({ type: 'response.cancel', event_id: 'e2' })
    if (types.includes('response.cancelled')) break
  }
  expect(cleaned).toEqual(['agent', 'inner', 'outer'])
})

test('everything else of the agent stays, and what changes later is seen', () => {
  const agent = new Agent({ name: 'composed', skills: [] })
  const wrapped = wrap(agent, (_turn, next) => next())
  let changes = 0
  const stop = wrapped.onChange?.(() => changes++)
  wrapped.addSkill({ name: 'more', tools: [{ name: 'look', parameters: { type: 'object' }, run: () => 'x' }] })
  expect(changes).toBe(1)
  expect(wrapped.tools?.map(({ name }) => name)).toEqual(['look'])
  expect(wrapped.capabilities.provides).toEqual(agent.capabilities.provides)
  expect(wrapped.run).not.toBe(agent.run)
  stop?.()
})
