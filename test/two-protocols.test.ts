import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { demo } from '../src/agents/demo/index.ts'
import { parseSse } from '../src/wire/sse-parse.ts'
import { Client, overSocket, type Heard as Message } from './acp/wire.ts'
import { endless } from './support/agents.ts'
import { startServer } from './support/server.ts'
import { isEnd, textOf } from './support/talk.ts'
import { overWebSocket } from './support/wire.ts'

/** A run of AG-UI on a session that is there already: its thread is that session. Leaving it closes the connection. */
async function* run(url: string, threadId: string, content: string): AsyncGenerator<Message, void> {
  const response = await fetch(`${url}/ag-ui`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'text/event-stream' },
    body: JSON.stringify({
      threadId,
      runId: randomUUID(),
      protocolVersion: '1.0',
      state: {},
      messages: [{ id: randomUUID(), role: 'user', content }],
      tools: [],
      context: [],
      forwardedProps: {},
    }),
  })
  if (!response.ok || !response.body) throw new Error(`${response.status} ${await response.text()}`)
  for await (const { data } of parseSse(response.body)) yield JSON.parse(data) as Message
}

const saidIn = (events: readonly Message[]): string =>
  events.map(({ type, delta }) => (type === 'TEXT_MESSAGE_CONTENT' ? (delta as string) : '')).join('')

/** A session that an editor has begun. */
async function begun(agent = demo()) {
  const { url } = await startServer(agent)
  const editor = await Client.connect(overSocket(url))
  await editor.initialize()
  const session = await editor.open()
  return { url, editor, session }
}

test('a session begun over ACP is watched over UAMP events and continued over AG-UI, with one history', async () => {
  const { url, editor, session } = await begun()
  const watcher = await overWebSocket(url)
  await watcher.follow(session, 0)

  expect(await editor.say(session, 'one')).toMatchObject({ result: { stopReason: 'end_turn' } })
  expect(editor.text).toBe('You said: one')
  await watcher.next(isEnd)
  expect(textOf(watcher.heard)).toBe('You said: one')

  const events: Message[] = []
  for await (const event of run(url, session, '/history')) events.push(event)
  const history = 'user: one\nassistant: You said: one\nuser: /history'
  expect(saidIn(events)).toBe(history)
  // Who joins is told what was said before.
  expect(events.findLast(({ type }) => type === 'MESSAGES_SNAPSHOT')?.['messages']).toMatchObject([
    { role: 'user', content: 'one' },
    { role: 'assistant', content: 'You said: one' },
    { role: 'user', content: '/history' },
  ])
  expect(events.at(-1)).toMatchObject({ type: 'RUN_FINISHED', threadId: session, outcome: { type: 'success' } })

  // The others have seen that answer too, and the editor goes on after it.
  await watcher.next(isEnd)
  expect(textOf(watcher.heard)).toBe(`You said: one${history}`)
  await expect.poll(() => editor.text).toBe(`You said: one${history}`)
  const before = editor.text.length
  await editor.say(session, '/history')
  expect(editor.text.slice(before).split('\n')).toEqual([
    'user: one',
    'assistant: You said: one',
    'user: /history',
    `assistant: ${history.replaceAll('\n', ' ')}`,
    'user: /history',
  ])
})

test('an editor that loads a session of AG-UI is shown the whole of it', async () => {
  const { url } = await startServer(demo())
  const [started] = await collected(run(url, 'a-thread', 'one'))
  const session = started?.['metadata'].uamp.session_id as string
  const editor = await Client.connect(overSocket(url))
  await editor.initialize()
  expect(await editor.ask('session/load', { sessionId: session, cwd: '/project', mcpServers: [] })).toHaveProperty('result')
  expect(editor.updates.filter(({ sessionUpdate }) => sessionUpdate.endsWith('message_chunk'))).toMatchObject([
    { sessionUpdate: 'user_message_chunk', content: { text: 'one' } },
    { sessionUpdate: 'agent_message_chunk', content: { text: 'You said: one' } },
  ])
})

test('a cancel over UAMP events ends the prompt of ACP as cancelled', async () => {
  const { agent, stopped } = endless()
  const { url, editor, session } = await begun(agent)
  const other = await overWebSocket(url)
  await other.follow(session, 0)
  const prompt = editor.say(session, 'go')
  await other.next('response.delta')
  await other.send({ type: 'response.cancel', session_id: session })
  expect(await prompt).toMatchObject({ result: { stopReason: 'cancelled' } })
  await other.next('response.cancelled')
  await stopped
})

test('a cancel over ACP ends a response that was asked for over UAMP events', async () => {
  const { agent, stopped } = endless()
  const { url, editor, session } = await begun(agent)
  const other = await overWebSocket(url)
  await other.follow(session, 0)
  await other.send({ type: 'input.text', text: 'go', session_id: session })
  await other.send({ type: 'response.create', session_id: session })
  await editor.update('agent_message_chunk')
  editor.send({ method: 'session/cancel', params: { sessionId: session } })
  await other.next('response.cancelled')
  await stopped
})

test('and a run of AG-UI', async () => {
  const { agent, stopped } = endless()
  const { url, editor, session } = await begun(agent)
  const events = collected(run(url, session, 'go'))
  await editor.update('agent_message_chunk')
  editor.send({ method: 'session/cancel', params: { sessionId: session } })
  expect((await events).at(-1)).toMatchObject({ type: 'RUN_FINISHED', outcome: { type: 'cancelled' } })
  await stopped
})

test('a front end that leaves its run ends it for all', async () => {
  const { agent, stopped } = endless()
  const { url, session } = await begun(agent)
  const watcher = await overWebSocket(url)
  await watcher.follow(session, 0)
  for await (const { type } of run(url, session, 'go')) if (type === 'TEXT_MESSAGE_CONTENT') break
  await watcher.next('response.cancelled')
  await stopped
})

test('while a prompt of ACP is being answered, a run of AG-UI is refused and harms nothing', async () => {
  const { agent, stopped } = endless()
  const { url, editor, session } = await begun(agent)
  const prompt = editor.say(session, 'go')
  await editor.update('agent_message_chunk')
  await expect(collected(run(url, session, 'me too'))).rejects.toThrow(/^409 /)
  editor.send({ method: 'session/cancel', params: { sessionId: session } })
  expect(await prompt).toMatchObject({ result: { stopReason: 'cancelled' } })
  await stopped
})

async function collected(events: AsyncIterable<Message>): Promise<Message[]> {
  const all: Message[] = []
  for await (const event of events) all.push(event)
  return all
}
