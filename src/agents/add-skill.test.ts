import { expect, test } from 'vitest'
import { answering } from '../../test/agents/provider.ts'
import { startServer } from '../../test/support/server.ts'
import { isEnd, say, textOf } from '../../test/support/talk.ts'
import { verifies } from '../../test/support/verifies.ts'
import { overWebSocket } from '../../test/support/wire.ts'
import { defineAgent } from '../core/agent-kit/define-agent.ts'
import { text } from '../core/agent-kit/drafts.ts'
import { exchange } from '../core/agent-kit/exchange.ts'
import type { Principal } from '../core/ports/access.ts'
import type { Gateway } from '../core/ports/session.ts'
import type { Handler, Skill } from '../core/ports/skill.ts'
import { UampError } from '../protocol/errors.ts'
import { Agent } from './agent.ts'
import { llmAgent } from './llm/index.ts'

const says = (name: string, words: string, subscribes = ['input.text']): Handler => ({
  name,
  subscribes,
  async *process() {
    yield text(words)
  },
})

/** A handler that says who is there, waits for `go`, and hands on to a handler of `greeting`. */
function patient(go: Promise<void>): Handler {
  return {
    name: 'patient',
    subscribes: ['input.text'],
    async *process(_, turn) {
      yield text(`${turn.config.instructions ?? 'no prompt'}, ${turn.tools.length} tools. `)
      await go
      yield { type: 'greeting' }
    },
  }
}

const GREETER: Skill = {
  name: 'greeter',
  tools: [{ name: 'wave', run: () => 'waved' }],
  prompts: [{ text: () => 'Be kind' }],
  handlers: [says('hello', 'Hello.', ['greeting'])],
  secrets: ['a-key-of-the-greeter'],
  routes: () => [{ method: 'GET', path: '/greeting', access: 'request', handle: async () => new Response('Hello') }],
}

verifies('uamp-transports.add-skill', 'a skill that is added before the agent is served is like one it was made with', async () => {
  const agent = new Agent({ name: 'one', handlers: [patient(Promise.resolve())] })
  agent.addSkill(GREETER)
  const { url } = await startServer(agent)
  expect(await (await fetch(`${url}/greeting`)).text()).toBe('Hello')
  const wire = await overWebSocket(url)
  await wire.open()
  expect((await wire.next('capabilities'))['capabilities'].tools.built_in_tools).toEqual(['wave'])
  expect(textOf(await say(wire, 'x'))).toBe('Be kind, 1 tools. Hello.')
})

verifies(
  'uamp-transports.add-skill',
  'a skill that is added to a served agent is there at the next turn, and its routes at once',
  async () => {
    let go!: () => void
    const agent = new Agent({ name: 'one', handlers: [patient(new Promise((resolve) => (go = resolve)))] })
    const { url } = await startServer(agent)
    const wire = await overWebSocket(url)
    await wire.open()
    await wire.next('capabilities')
    expect((await fetch(`${url}/greeting`)).status).toBe(404)
    await wire.send({ type: 'input.text', text: 'x' })
    await wire.send({ type: 'response.create' })
    await wire.next('response.delta')

    agent.addSkill(GREETER)
    expect((await wire.next('capabilities'))['capabilities'].tools.built_in_tools).toEqual(['wave'])
    expect((await fetch(`${url}/agents/one/greeting`)).status).toBe(200)
    expect((await fetch(`${url}/greeting`)).status).toBe(200)
    go()
    await wire.next(isEnd)
    // The turn that ran has no handler for `greeting`.
    expect(textOf(wire.heard)).toBe('no prompt, 0 tools. ')
    expect(textOf(await say(wire, 'x'))).toBe('Be kind, 1 tools. Hello.')
  },
)

test('the secrets of a skill that is added to a served agent stay out of errors', async () => {
  const agent = new Agent({ name: 'one' })
  const { url } = await startServer(agent)
  const fails = async (): Promise<Response> => {
    throw new UampError('provider_error', 'It refused a-key-of-the-greeter')
  }
  agent.addSkill({ name: 'failing', routes: () => [{ method: 'GET', path: '/fail', access: 'request', handle: fails }] })
  expect(await (await fetch(`${url}/fail`)).text()).toContain('a-key-of-the-greeter')
  agent.addSkill(GREETER)
  const told = await (await fetch(`${url}/fail`)).text()
  expect(told).toContain('It refused')
  expect(told).not.toContain('a-key-of-the-greeter')
})

test('the observers of both sides of an addition see each event once', async () => {
  const seen: string[] = []
  const watch = (name: string): Skill => ({
    name,
    observers: [{ name, subscribes: ['greeting'], observe: () => void seen.push(name) }],
  })
  const agent = new Agent({ name: 'one', handlers: [patient(Promise.resolve())], skills: [watch('first')] })
  agent.addSkill(watch('second'))
  const { url } = await startServer(agent)
  const wire = await overWebSocket(url)
  await wire.open()
  await say(wire, 'x')
  await expect.poll(() => seen).toEqual(['first', 'second'])
})

test('a skill is added once', () => {
  const agent = new Agent({ name: 'one', skills: [GREETER] })
  expect(() => agent.addSkill(GREETER)).toThrow('The agent "one" has a skill "greeter" already')
})

test('a server that is closed or has lost the agent is no longer told', async () => {
  const agent = new Agent({ name: 'one' })
  const told: string[] = []
  const { agents, close } = await startServer(agent)
  agents.onChange((name) => void told.push(name))
  agent.addSkill({ name: 'a' })
  agents.remove('one')
  agent.addSkill({ name: 'b' })
  agents.add(agent)
  agents.add(agent)
  expect(told).toEqual(['one', 'one', 'one'])
  agent.addSkill({ name: 'c' })
  await close({ graceMs: 0 })
  agent.addSkill({ name: 'd' })
  expect(told).toEqual(['one', 'one', 'one', 'one'])
})

const principal: Principal = { tenant: 'default', id: 'me', scopes: ['*'] }

async function answer(gateway: Gateway, agent: string, handoff?: string): Promise<string> {
  const messages = [{ role: 'user' as const, content: 'x' }]
  const events = []
  for await (const event of exchange(gateway, { agent, principal, messages, ...(handoff !== undefined && { handoff }) })) events.push(event)
  return textOf(events)
}

verifies('uamp-transports.handoff-name', 'an exchange goes to the handler that it names, whatever that subscribes to', async () => {
  const agent = new Agent({ name: 'one', handlers: [says('usual', 'The usual'), says('special', 'The special', ['never'])] })
  const { gateway, agents } = await startServer(agent)
  expect(await answer(gateway, 'one')).toBe('The usual')
  expect(await answer(gateway, 'one', 'special')).toBe('The special')
  expect(await answer(gateway, 'one', 'usual')).toBe('The usual')
  await expect(answer(gateway, 'one', 'other')).rejects.toMatchObject({
    code: 'invalid_request',
    message: 'The agent "one" has no handoff "other": there are: usual, special',
  })
  agents.add(defineAgent('plain', async function* () {}))
  await expect(answer(gateway, 'plain', 'other')).rejects.toThrow('The agent "plain" has no handoff "other": it has none')
})

verifies(
  'uamp-transports.handoff-name',
  'an exchange goes to the agent that it names, among those that a model hands over to',
  async () => {
    const other = new Agent({ name: 'my.other', handlers: [says('a', 'From the other')] })
    const model = answering(() => [text('From the model')])
    const { gateway } = await startServer(
      llmAgent({ name: 'one', model, handoffs: [other], skills: [{ name: 's', handlers: [says('h', 'From a handler')] }] }),
    )
    expect(await answer(gateway, 'one', 'my_other')).toBe('From the other')
    expect(await answer(gateway, 'one', 'h')).toBe('From a handler')
    expect(await answer(gateway, 'one', 'one-model')).toBe('From the model')
    await expect(answer(gateway, 'one', 'nobody')).rejects.toThrow('there are: my_other, h, one-model')
  },
)

test('a handler that hands the turn to another agent does not hand on the name', async () => {
  const other = new Agent({ name: 'other', handlers: [says('a', 'From the other')] })
  const passing: Handler = { name: 'pass', subscribes: [], process: (_, { given }) => other.run(given) }
  const { gateway } = await startServer(new Agent({ name: 'one', handlers: [passing] }))
  expect(await answer(gateway, 'one', 'pass')).toBe('From the other')
})
