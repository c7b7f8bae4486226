import { expect, test } from 'vitest'
import { UampError } from '../../protocol/errors.ts'
import type { ClientEvent, ServerEvent } from '../../protocol/events.ts'
import { memoryStore } from '../../stores/memory.ts'
import { AgentRegistry } from './agent-registry.ts'
import { defineAgent } from '../agent-kit/define-agent.ts'
import { text } from '../agent-kit/drafts.ts'
import { exchange } from '../agent-kit/exchange.ts'
import { createGateway } from './gateway.ts'
import type { AgentPort } from '../ports/agent.ts'
import type { Session, SessionInit } from '../ports/session.ts'
import type { Store } from '../ports/store.ts'

const principal = { tenant: 'default', id: 'someone', scopes: [] }
const ENDS = new Set(['response.done', 'response.error', 'response.cancelled'])

/** Asks for two tools at once, then says their results. Counts how often it is run. */
function asker(): { agent: AgentPort; begun: () => number; cleaned: () => number } {
  let begun = 0
  let cleaned = 0
  const agent = defineAgent('asker', async function* (turn) {
    begun++
    try {
      yield { type: 'response.delta', delta: { type: 'text', text: 'asking ' } }
      const answers = await Promise.all([
        turn.ask('tool.call', { name: 'a', arguments: '{}' }),
        turn.ask('tool.call', { name: 'b', arguments: '{}' }),
      ])
      yield { type: 'response.delta', delta: { type: 'text', text: answers.map(({ result }) => result).join('+') } }
    } finally {
      cleaned++
    }
  })
  return { agent, begun: () => begun, cleaned: () => cleaned }
}

const init = (agent: string): SessionInit => ({
  transport: 'test',
  agent,
  principal,
  config: { modalities: ['text'] },
  duplex: false,
  persist: true,
  onDetach: 'continue',
})

function gatewayOf(agent: AgentPort, store: Store = memoryStore()) {
  const agents = new AgentRegistry()
  agents.add(agent)
  return createGateway({ agents, store })
}

let events = 0
const id = (): string => `e${++events}`

/** Sends events and returns those of the response that ends next. */
async function responseTo(session: Session, ...sent: readonly ClientEvent[]): Promise<ServerEvent[]> {
  const reader = session.read({ extensions: 'all' })
  for (const event of sent) await session.send(event)
  const heard: ServerEvent[] = []
  for await (const batch of reader) {
    for (const { event } of batch) heard.push(event)
    if (batch.has(ENDS)) break
  }
  return heard
}

const create = (): ClientEvent => ({ type: 'response.create', event_id: id() })
const input = (words: string): ClientEvent => ({ type: 'input.text', event_id: id(), text: words })
const result = (call_id: string, json: string): ClientEvent => ({ type: 'tool.result', event_id: id(), call_id, result: json })
const callsIn = (heard: readonly ServerEvent[]): string[] => heard.flatMap((event) => (event.type === 'tool.call' ? [event.call_id] : []))
const textIn = (heard: readonly ServerEvent[]): string =>
  heard.map((event) => (event.type === 'response.delta' && event.delta.type === 'text' ? event.delta.text : '')).join('')

test('on a one-way transport a question ends the response, and the answer goes on in a new one', async () => {
  const { agent, begun } = asker()
  const session = await gatewayOf(agent).open(init('asker'))
  const first = await responseTo(session, input('go'), create())
  const [a, b] = callsIn(first) as [string, string]
  const end = first.at(-1)
  expect(end).toMatchObject({ type: 'response.done', response: { extensions: { uamp: { waiting: [a, b] } } } })
  await session.send(result(b, 'B'))
  await expect(session.send(create())).rejects.toMatchObject({ code: 'invalid_request', details: { waiting: [a] } })
  const second = await responseTo(session, result(a, 'A'), create())
  expect(second.map(({ type }) => type)).toEqual(['response.created', 'response.delta', 'response.done'])
  expect(textIn(second)).toBe('A+B')
  expect(begun()).toBe(1)
  expect(second[0]).not.toMatchObject({ response_id: (first[0] as { response_id: string }).response_id })
})

test('after a restart the turn is run again, and finds its answers', async () => {
  const store = memoryStore()
  const { agent, begun } = asker()
  const before = gatewayOf(agent, store)
  const session = await before.open(init('asker'))
  const [a, b] = callsIn(await responseTo(session, input('go'), create())) as [string, string]
  await before.close()

  const after = gatewayOf(agent, store)
  await after.start()
  const found = (await after.attach(session.id, principal)) as Session
  await found.send(result(b, 'B'))
  const second = await responseTo(found, result(a, 'A'), create())
  expect(textIn(second)).toBe('asking A+B')
  expect(begun()).toBe(2)
})

test('an approval is given after a restart, under the key that the agent chose', async () => {
  const store = memoryStore()
  const careful = defineAgent('careful', async function* (turn) {
    const { approved } = await turn.ask('x.approval.request', { message: 'May I?' }, { key: 'the-one-question' })
    yield text(approved ? 'done' : 'left')
  })
  const before = gatewayOf(careful, store)
  const session = await before.open(init('careful'))
  const first = await responseTo(session, input('go'), create())
  const { approval_id } = first.find(({ type }) => type === 'x.approval.request') as { approval_id: string }
  await before.close()
  const after = gatewayOf(careful, store)
  const found = (await after.attach(session.id, principal)) as Session
  const answer: ClientEvent = { type: 'x.approval.response', event_id: id(), approval_id, approved: true }
  expect(textIn(await responseTo(found, answer, create()))).toBe('done')
})

test('what was asked and answered is in the conversation', async () => {
  const { agent } = asker()
  const listing = defineAgent('asker', async function* (turn) {
    if (turn.messages.length === 1) yield* agent.run(turn)
    else
      yield text(
        turn.messages
          .map(({ role, tool_calls, content }) => `${role}:${tool_calls?.map(({ name }) => name).join('') ?? content}`)
          .join(' '),
      )
  })
  const session = await gatewayOf(listing).open(init('asker'))
  const [a, b] = callsIn(await responseTo(session, input('go'), create())) as [string, string]
  await responseTo(session, result(a, 'A'), result(b, 'B'), create())
  expect(textIn(await responseTo(session, input('list'), create()))).toBe('user:go assistant:ab tool:A tool:B assistant:A+B user:list')
})

test('new input instead of an answer abandons the question', async () => {
  const { agent, cleaned } = asker()
  const session = await gatewayOf(agent).open(init('asker'))
  await responseTo(session, input('go'), create())
  const second = await responseTo(session, input('never mind'), create())
  expect(textIn(second)).toBe('asking ')
  await expect.poll(cleaned).toBe(1)
})

test('one principal may have so many questions open; the oldest is given up', async () => {
  const { agent, cleaned } = asker()
  const agents = new AgentRegistry()
  agents.add(agent)
  const gateway = createGateway({ agents, store: memoryStore(), limits: { parkedPerPrincipal: 2 } })
  for (let n = 0; n < 3; n++) await responseTo(await gateway.open(init('asker')), input('go'), create())
  await expect.poll(cleaned).toBe(1)
})

test('a stateless client sends the answer within the conversation', async () => {
  const { agent, begun } = asker()
  const gateway = gatewayOf(agent)
  const run = async (messages: Parameters<typeof exchange>[1]['messages']) => {
    const heard: ServerEvent[] = []
    for await (const event of exchange(gateway, { agent: 'asker', principal, messages })) heard.push(event)
    return heard
  }
  const first = await run([{ role: 'user', content: 'go' }])
  const [a, b] = callsIn(first) as [string, string]
  const tool_calls = [
    { id: a, name: 'a', arguments: '{}' },
    { id: b, name: 'b', arguments: '{}' },
  ]
  const second = await run([
    { role: 'user', content: 'go' },
    { role: 'assistant', content: 'asking ', tool_calls },
    { role: 'tool', tool_call_id: a, content: 'A' },
    { role: 'tool', tool_call_id: b, content: 'B' },
  ])
  expect(textIn(second)).toBe('asking A+B')
  expect(begun()).toBe(2)
  expect(gateway.openSessions).toBe(0)
})

test('continuing from an older turn forks the conversation', async () => {
  const echo = defineAgent('echo', async function* (turn) {
    yield { type: 'response.delta', delta: { type: 'text', text: turn.messages.map(({ content }) => content).join('|') } }
  })
  const gateway = gatewayOf(echo)
  const trunk = await gateway.open(init('echo'))
  const one = await responseTo(trunk, input('1'), create())
  await responseTo(trunk, input('2'), create())
  const parent = (one[0] as { response_id: string }).response_id
  const branch = await gateway.open({ ...init('echo'), parent })
  expect(textIn(await responseTo(branch, input('3'), create()))).toBe('1|1|3')
  expect(textIn(await responseTo(trunk, input('4'), create()))).toBe('1|1|2|1|1|2|4')
  await expect(gateway.open({ ...init('echo'), parent, principal: { ...principal, id: 'other' } })).rejects.toMatchObject({
    code: 'not_found',
  })
})

test('a session is found again by the alias its owner chose', async () => {
  const { agent } = asker()
  const gateway = gatewayOf(agent)
  const alias = { protocol: 'test', id: 'thread/1' }
  const session = await gateway.open({ ...init('asker'), alias })
  expect((await gateway.attach(alias, principal))?.id).toBe(session.id)
  expect(await gateway.attach(alias, { ...principal, id: 'other' })).toBeUndefined()
  await expect(gateway.open({ ...init('asker'), alias })).rejects.toMatchObject({ code: 'conflict' })
  expect((await gateway.open({ ...init('asker'), alias, principal: { ...principal, id: 'other' } })).id).not.toBe(session.id)
})

const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 20))

test('what an agent says, asks or does while its question waits belongs to the response that the answer opens', async () => {
  const cases: Readonly<Record<string, AgentPort['run']>> = {
    'late,got 1': async function* (turn) {
      const answer = turn.ask('tool.call', { name: 'a', arguments: '{}' })
      await pause()
      yield text('late,')
      yield text(`got ${(await answer).result}`)
    },
    'not waited for': async function* (turn) {
      void turn.ask('tool.call', { name: 'a', arguments: '{}' })
      await pause()
      yield text('not waited for')
    },
    'only at the end': async function* (turn) {
      void turn.ask('tool.call', { name: 'a', arguments: '{}' })
      await pause()
      const output = [{ type: 'text' as const, text: 'only at the end' }]
      yield { type: 'response.done', response: { id: '', status: 'completed', output } }
    },
  }
  for (const [said, run] of Object.entries(cases)) {
    const session = await gatewayOf(defineAgent('asker', run)).open(init('asker'))
    const [call = ''] = callsIn(await responseTo(session, input('go'), create()))
    await pause().then(pause)
    const second = await responseTo(session, result(call, '1'), create())
    expect(textIn(second)).toBe(said)
    expect(second.at(-1)).toMatchObject({ type: 'response.done', response: { status: 'completed' } })
  }
})

test('an agent that fails while its question waits fails the response that the answer opens', async () => {
  const agent = defineAgent('asker', async function* (turn) {
    void turn.ask('tool.call', { name: 'a', arguments: '{}' })
    await pause()
    yield* []
    throw new UampError('provider_error', 'No')
  })
  const session = await gatewayOf(agent).open(init('asker'))
  const [call = ''] = callsIn(await responseTo(session, input('go'), create()))
  await pause().then(pause)
  const second = await responseTo(session, result(call, '1'), create())
  expect(second.at(-1)).toMatchObject({ type: 'response.error', error: { code: 'provider_error' } })
})

test('a question that is put while another one waits is put in the response that the answer opens', async () => {
  const agent = defineAgent('asker', async function* (turn) {
    const first = turn.ask('tool.call', { name: 'a', arguments: '{}' })
    await pause()
    const second = turn.ask('tool.call', { name: 'b', arguments: '{}' })
    yield text(`${(await first).result}+${(await second).result}`)
  })
  const session = await gatewayOf(agent).open(init('asker'))
  const [a = ''] = callsIn(await responseTo(session, input('go'), create()))
  await pause().then(pause)
  const [b = ''] = callsIn(await responseTo(session, result(a, '1'), create()))
  expect(textIn(await responseTo(session, result(b, '2'), create()))).toBe('1+2')
})
