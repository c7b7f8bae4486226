import { expect } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { text } from '../../src/core/agent-kit/drafts.ts'
import { coin } from '../support/money.ts'
import { startServer } from '../support/server.ts'
import { isEnd, say } from '../support/talk.ts'
import { verifies } from '../support/verifies.ts'
import { overWebSocket } from '../support/wire.ts'
import { paid } from './agents.ts'
import { heard, joins, messagesOf, post, refusal, replay, run, user, type Heard } from './wire.ts'

const input = { threadId: 't' }
const lines = (said: string) => said.split('\n')

/** A client that keeps what it hears, as AG-UI's do. */
function page(url: string, threadId = 't') {
  const messages: object[] = []
  const talk = async (said: readonly object[], more: object = {}) => {
    messages.push(...said)
    const heard = await run(url, messages, { input: { threadId, ...more } })
    messages.push(...messagesOf(heard.events))
    return heard
  }
  return { messages, talk }
}

verifies('ag-ui.thread', 'messages that are there already are not said again', async () => {
  const { url } = await startServer(demo())
  const { talk } = page(url)
  await talk([user('u1', 'one')])
  await talk([user('u2', '/tool add {"a":1,"b":2}')])
  const { said } = await talk([user('u3', '/history')])
  expect(lines(said)).toEqual([
    'user: one',
    'assistant: You said: one',
    'user: /tool add {"a":1,"b":2}',
    'assistant: [call add {"a":1,"b":2}]',
    'tool: {"sum":3}',
    'assistant: add answered: {"sum":3}',
    'user: /history',
  ])
})

verifies('ag-ui.thread', 'what failed before it was answered is not said again', async () => {
  const { url } = await startServer(demo())
  const { talk } = page(url)
  await talk([user('u1', '/error no')])
  await talk([user('u2', '/error never')])
  expect(lines((await talk([user('u3', '/history')])).said)).toEqual(['user: /error no', 'user: /error never', 'user: /history'])
})

verifies(['ag-ui.thread', 'ag-ui.snapshot'], 'a client that leaves out what is there is told all of it', async () => {
  const { url } = await startServer(demo())
  await run(url, [user('u1', 'one')], { input })
  const { said, events, types } = await run(url, [user('u2', '/history')], { input: { ...input, ...joins } })
  expect(lines(said)).toEqual(['user: one', 'assistant: You said: one', 'user: /history'])
  // In two steps: official clients leave what they have in its place.
  expect(types.slice(1, 3)).toEqual(['MESSAGES_SNAPSHOT', 'MESSAGES_SNAPSHOT'])
  expect(events[1]?.['messages']).toEqual(events[2]?.['messages'].slice(0, -1))
  const messages = events[2]?.['messages'] as { id: string; role: string; content: string }[]
  expect(messages.map(({ role, content }) => [role, content])).toEqual([
    ['user', 'one'],
    ['assistant', 'You said: one'],
    ['user', '/history'],
  ])
  // What it was told it has: it is recognised.
  const more = await run(url, [...messages, ...messagesOf(events), user('u3', '/history')], { input })
  expect(more.types).not.toContain('MESSAGES_SNAPSHOT')
  expect(lines(more.said).filter((line) => line.startsWith('user'))).toHaveLength(3)
})

verifies('ag-ui.branch', 'an answer is made again, and a message is said anew', async () => {
  const { url } = await startServer(demo())
  const { talk, messages } = page(url)
  await talk([user('u1', 'one')])
  const before = [...messages]
  await talk([user('u2', 'two')])
  const again = await run(url, [...before, user('u2', 'two')], { input })
  expect(again.said).toBe('You said: two')
  const { said } = await run(url, [...before, user('u3', '/history')], { input })
  expect(lines(said)).toEqual(['user: one', 'assistant: You said: one', 'user: /history'])
})

verifies('ag-ui.branch', 'a run goes on from the run it names, whatever was said since', async () => {
  const { url } = await startServer(demo())
  const { talk } = page(url)
  await talk([user('u1', 'one')], { runId: 'first' })
  await talk([user('u2', 'two')], { runId: 'second' })
  const { said, events } = await run(url, [user('u3', '/history')], { input: { ...input, parentRunId: 'first' } })
  expect(lines(said)).toEqual(['user: one', 'assistant: You said: one', 'user: /history'])
  expect(events[0]).toMatchObject({ type: 'RUN_STARTED', parentRunId: 'first' })
  const unknown = await run(url, 'hi', { input: { parentRunId: 'of another server' } })
  expect(unknown.said).toBe('You said: hi')
})

verifies('ag-ui.thread', 'threads are their owners and their agents', async () => {
  const other = defineAgent('other', async function* ({ messages }) {
    yield text(String(messages.length))
  })
  const { url } = await startServer([demo(), other], { tokens: { a: 'one-0123456789abcdef', b: 'two-0123456789abcdef' } })
  const as = (token: string) => ({ input, headers: { authorization: `Bearer ${token}` } })
  await run(url, [user('u1', 'mine')], as('one-0123456789abcdef'))
  expect(lines((await run(url, [user('u2', '/history')], as('two-0123456789abcdef'))).said)).toEqual(['user: /history'])
  expect((await run(`${url}/agents/other`, [user('u2', 'x')], as('one-0123456789abcdef'))).said).toBe('1')
})

verifies('ag-ui.thread', 'two runs of a thread at once: one is refused', async () => {
  const { url } = await startServer(demo())
  const both = await Promise.all([1, 2].map((n) => post(url, [user(`u${n}`, '/count 60 50')], { input })))
  expect(new Set(both.map(({ status }) => status))).toEqual(new Set([200, 409]))
  for (const response of both) {
    if (response.status === 200) expect(await response.text()).toContain('RUN_FINISHED')
    else expect(await refusal(response)).toMatchObject({ code: expect.stringMatching(/conflict|response_in_progress/) })
  }
})

verifies('ag-ui.thread', 'after its session has ended a thread begins anew', async () => {
  const server = await startServer(demo())
  const { events } = await run(server.url, [user('u1', 'one')], { input })
  const { session_id } = events[0]?.['metadata'].uamp as { session_id: string }
  const session = await server.gateway.attach(session_id, { tenant: 'default', id: 'anonymous', scopes: ['*'] })
  expect(session).toBeDefined()
  await session?.end()
  expect(lines((await run(server.url, [user('u2', '/history')], { input })).said)).toEqual(['user: /history'])
})

verifies(['ag-ui.thread', 'ag-ui.snapshot'], 'a session that was begun over UAMP events goes on over AG-UI', async () => {
  const { url } = await startServer(demo())
  const wire = await overWebSocket(url)
  const threadId = await wire.open()
  await say(wire, 'from events')
  const { said, types } = await run(url, [user('u1', '/history')], { input: { threadId } })
  expect(types[1]).toBe('MESSAGES_SNAPSHOT')
  expect(lines(said)).toEqual(['user: from events', 'assistant: You said: from events', 'user: /history'])
  await wire.next(isEnd)
  const after = await say(wire, '/history')
  expect(JSON.stringify(after)).toContain('from events')
  wire.close()
})

verifies(
  ['ag-ui.interrupt', 'ag-ui.thread'],
  'a question on such a session ends the run, and the response goes on when it is resumed',
  async () => {
    const { url } = await startServer(demo())
    const wire = await overWebSocket(url)
    const threadId = await wire.open({ client_capabilities: capabilities })
    const { end, events } = await run(url, [user('u1', '/approve it')], { input: { threadId, runId: 'r1' } })
    const [interrupt] = end['outcome'].interrupts as { id: string }[]
    const resume = [{ interruptId: interrupt?.id, status: 'resolved', payload: true }]
    const after = await run(url, [user('u1', '/approve it')], { input: { threadId, runId: 'r2', resume } })
    expect(after.said).toBe('Approved: it')
    expect(idOf(after.events)).toBe(idOf(events))
    const again = await fetch(`${url}/ag-ui/runs/r2`)
    expect(await again.text()).toBe(after.text)
    wire.close()
  },
)

verifies('ag-ui.client-tools', 'a tool of the page on such a session', async () => {
  const { url } = await startServer(demo())
  const wire = await overWebSocket(url)
  const threadId = await wire.open()
  const tools = [{ name: 'pick', description: '' }]
  const first = await run(url, [user('u1', '/tool pick')], { input: { threadId, tools } })
  const [call] = messagesOf(first.events) as [{ toolCalls: { id: string }[] }]
  const toolCallId = call.toolCalls[0]?.id
  expect(first.end['outcome']).toEqual({ type: 'success', pendingToolCallIds: [toolCallId] })
  const messages = [user('u1', '/tool pick'), call, { id: 't1', role: 'tool', toolCallId, content: 'this' }]
  const next = await run(url, messages, { input: { threadId, tools } })
  expect(next.said).toBe('pick answered: this')
  expect(next.types).not.toContain('TOOL_CALL_START')
  wire.close()
})

verifies('ag-ui.payment-asked', 'money on such a session', async () => {
  const server = await startServer(paid)
  const { url } = server
  const wire = await overWebSocket(url)
  const threadId = await wire.open()
  expect((await run(url, [user('u1')], { input: { threadId }, headers: { 'x-payment': await coin(server, '0.01') } })).said).toBe(
    'Paid with a token.',
  )
  expect(await refusal(await post(url, [user('u2')], { input: { threadId } }))).toMatchObject({ status: 402 })
  wire.close()
})

verifies('ag-ui.cancel', 'a cancel over UAMP events ends the run', async () => {
  const { url } = await startServer(demo())
  const wire = await overWebSocket(url)
  const threadId = await wire.open()
  const response = await post(url, [user('u1', '/count 1000 20')], { input: { threadId } })
  await wire.next('response.delta')
  await wire.send({ type: 'response.cancel' })
  expect(heard(await response.text()).end['outcome']).toEqual({ type: 'cancelled' })
  wire.close()
})

const capabilities = {
  id: 'test',
  provider: 'test',
  modalities: ['text'],
  extensions: { uamp: { events: true } },
}

function idOf(events: readonly Heard[]): unknown {
  return events[0]?.['metadata'].uamp.response_id
}

verifies('ag-ui.thread', 'a run that is refused leaves nothing behind', async () => {
  let open: () => void = () => undefined
  const gate = new Promise<void>((resolve) => (open = resolve))
  const agent = defineAgent('slow', async function* ({ messages }) {
    yield text(messages.map(({ content }) => content).join(' | '))
    if (messages.length === 1) await gate
  })
  const { url } = await startServer(agent)
  const first = await post(url, [user('u1', 'one')], { input: { ...input, runId: 'r1' } })
  for (const runId of ['r1', 'r2']) {
    expect(await refusal(await post(url, [user('u2', 'refused')], { input: { ...input, runId } }))).toMatchObject({ status: 409 })
  }
  open()
  const whole = heard(await first.text())
  expect(await refusal(await fetch(`${url}/ag-ui/runs/r2`))).toMatchObject({ status: 404 })
  expect((await replay(url, 'r1')).text).toBe(whole.text)
  expect((await run(url, [user('u3', 'three')], { input: { ...input, ...joins } })).said).toBe('one | one | three')
})

verifies('ag-ui.cancel', 'a page may stop a run and start the next at once', async () => {
  const { url } = await startServer(demo())
  for (let round = 0; round < 10; round++) {
    const stop = new AbortController()
    expect((await post(url, [user(`s${round}`, '/count 100000 1')], { input, signal: stop.signal })).status).toBe(200)
    stop.abort()
    expect((await run(url, [user(`u${round}`, 'next')], { input })).said).toBe('You said: next')
  }
})

const CHANGES: readonly [name: string, change: (messages: Said[]) => Said[], told: string[]][] = [
  ['edits what was said', ([one, ...rest]) => [{ ...(one as Said), content: 'uno' }, ...rest], ['user: uno', 'assistant: You said: one']],
  ['edits an answer', ([one, two, ...rest]) => [one as Said, { ...(two as Said), content: 'No' }, ...rest], ['user: one', 'assistant: No']],
  ['takes something away', ([, ...rest]) => rest, ['assistant: You said: one']],
]
interface Said {
  readonly id: string
  readonly content: string
}
for (const [name, change, told] of CHANGES) {
  verifies('ag-ui.thread', `a client that ${name} is believed`, async () => {
    const { url } = await startServer(demo())
    const { talk, messages } = page(url)
    await talk([user('u1', 'one')])
    await talk([user('u2', 'two')])
    const changed = change(messages as Said[])
    const { said } = await run(url, [...changed, user('u3', '/history')], { input })
    expect(lines(said)).toEqual([...told, 'user: two', 'assistant: You said: two', 'user: /history'])
  })
}

verifies('ag-ui.thread', 'ids must be text', async () => {
  const { url } = await startServer(demo())
  for (const ids of [{ threadId: 'a\ud800' }, { runId: '\udc00' }, { parentRunId: '\ud800x' }]) {
    expect(await refusal(await post(url, [user('u1', 'one')], { input: ids }))).toMatchObject({ status: 400 })
  }
})

verifies(['ag-ui.thread', 'ag-ui.snapshot'], 'who joined goes on with what he was told', async () => {
  const { url } = await startServer(demo())
  await run(url, [user('u1', '/image')], { input })
  await run(url, [user('u2', '/tool add {"a":1,"b":2}')], { input: { ...input, ...joins } })
  const joined = await run(url, [user('u3', 'nice')], { input: { ...input, ...joins } })
  const told = joined.events.findLast(({ type }) => type === 'MESSAGES_SNAPSHOT') as Heard
  const { said } = await run(url, [...told['messages'], ...messagesOf(joined.events), user('u4', '/history')], { input })
  // The picture of the first answer has no place among the messages of a client: so its own were recognised.
  expect(lines(said)[1]).toMatch(/^assistant: .*\[image/)
  expect(lines(said).slice(-3)).toEqual(['user: nice', 'assistant: You said: nice', 'user: /history'])
})

verifies(
  ['ag-ui.thread', 'ag-ui.branch', 'ag-ui.snapshot'],
  'what a page took back came again for whoever joined, or branched',
  async () => {
    const { url } = await startServer(demo())
    const { talk, messages } = page(url)
    await talk([user('u1', 'my secret')])
    messages.length = 0
    await talk([user('u1', 'edited')], { runId: 'edited' })
    await talk([user('u2', 'two')])
    const told = ['user: edited', 'assistant: You said: edited', 'user: two', 'assistant: You said: two', 'user: /history']
    const joined = await run(url, [user('u3', '/history')], { input: { ...input, ...joins } })
    expect(lines(joined.said)).toEqual(told)
    const shown = joined.events.findLast(({ type }) => type === 'MESSAGES_SNAPSHOT')?.['messages'] as { content: string }[]
    expect(shown.map(({ content }) => content)).toEqual(['edited', 'You said: edited', 'two', 'You said: two', '/history'])
    for (const list of [[user('b1', '/history')], [...messages.slice(0, 2), user('b1', '/history')]]) {
      const branch = await run(url, list, { input: { ...input, parentRunId: 'edited' } })
      expect(lines(branch.said)).toEqual(['user: edited', 'assistant: You said: edited', 'user: /history'])
    }
  },
)

verifies('ag-ui.branch', 'a first message that was edited under a new id brought back what it replaced', async () => {
  const { url } = await startServer(demo())
  const { talk, messages } = page(url)
  await talk([user('u1', 'my secret')])
  await talk([user('u2', 'two')])
  messages.length = 0
  const edited = await talk([user('u1-edited', '/history')])
  expect(edited.types).not.toContain('MESSAGES_SNAPSHOT')
  expect(lines(edited.said)).toEqual(['user: /history'])
  const next = await talk([user('u3', '/history')])
  expect(next.said).not.toContain('my secret')
  expect(lines(next.said)[0]).toBe('user: /history')
})

verifies('ag-ui.branch', 'a branch from a run without words said everything twice, and an edit in it was not seen', async () => {
  const { url } = await startServer(demo())
  const { talk, messages } = page(url)
  await talk([user('u1', '/error none')], { runId: 'silent' })
  await talk([user('u2', 'two')])
  const silent = await run(url, [user('u1', '/error none'), user('b1', '/history')], { input: { ...input, parentRunId: 'silent' } })
  expect(lines(silent.said)).toEqual(['user: /error none', 'user: /history'])
  const edited = [user('u1', 'other'), ...messages.slice(1), user('b2', '/history')]
  const branch = await run(url, edited, { input: { ...input, parentRunId: 'silent' } })
  expect(lines(branch.said)).toEqual(['user: other', 'user: two', 'assistant: You said: two', 'user: /history'])
})

verifies('ag-ui.thread', 'a message that a page puts before an answer was dropped', async () => {
  const { url } = await startServer(demo())
  const { talk, messages } = page(url)
  await talk([user('u1', 'one')])
  messages.splice(1, 0, user('u2', 'and this'))
  const { said } = await talk([user('u3', '/history')])
  expect(lines(said)).toEqual(['user: one', 'user: and this', 'assistant: You said: one', 'user: /history'])
})

verifies('ag-ui.thread', 'what a page changed in an answer beside its words was not seen', async () => {
  const { url } = await startServer(demo())
  const [call, result, answer] = ['assistant: [call add {"a":1,"b":2}]', 'tool: {"sum":3}', 'assistant: add answered: {"sum":3}']
  const changes: [change: (answer: Said[]) => (Said | undefined)[], told: string[]][] = [
    [(said) => said, [call, result, answer]],
    [([one, two, three]) => [one, { ...(two as Said), content: '4' }, three], [call, 'tool: 4', answer]],
    [([one, two]) => [one, two], [call, result]],
    [([, , three]) => [three], [answer]],
  ]
  for (const [change, told] of changes) {
    const { talk, messages } = page(url, crypto.randomUUID())
    const { events } = await talk([user('u1', '/tool add {"a":1,"b":2}')])
    messages.splice(1, Infinity, ...change(messagesOf(events) as Said[]).filter((message) => message !== undefined))
    expect(lines((await talk([user('u2', '/history')])).said).slice(1, -1)).toEqual(told)
  }
})

verifies('ag-ui.cancel', 'a run whose client left while it waited was begun all the same', async () => {
  const asked: string[] = []
  let open: () => void = () => undefined
  const gate = new Promise<void>((resolve) => (open = resolve))
  const agent = defineAgent('slow', async function* ({ messages }) {
    asked.push(messages.at(-1)?.content ?? '')
    yield text('.')
    if (asked.length === 1) await gate
  })
  const { url } = await startServer(agent)
  const first = await post(url, [user('u1', 'one')], { input })
  const leaving = new AbortController()
  const second = post(url, [user('u2', 'two')], { input, signal: leaving.signal })
  leaving.abort()
  await expect(second).rejects.toThrow()
  open()
  await first.text()
  await run(url, [user('u3', 'three')], { input })
  expect(asked).toEqual(['one', 'three'])
})

verifies('ag-ui.payment-asked', 'what was refused for want of money was in the thread', async () => {
  const server = await startServer(paid)
  const { url } = server
  expect((await post(url, [user('u1')], { input: { ...input, runId: 'r1' } })).status).toBe(402)
  expect((await fetch(`${url}/ag-ui/runs/r1`)).status).toBe(404)
  const again = await run(url, [user('u2')], {
    input: { ...input, forwardedProps: { uamp: { payment_token: await coin(server, '0.01') } } },
  })
  expect(again.said).toBe('Paid with a token.')
  expect(again.types).not.toContain('MESSAGES_SNAPSHOT')
})
