import { randomUUID } from 'node:crypto'
import { expect } from 'vitest'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { text } from '../../src/core/agent-kit/drafts.ts'
import type { AgentPort } from '../../src/core/ports/agent.ts'
import { startServer } from '../support/server.ts'
import { isEnd } from '../support/talk.ts'
import { verifies } from '../support/verifies.ts'
import { overWebSocket } from '../support/wire.ts'
import { caller } from './agents.ts'
import { Client, overSocket, overStdio, type Heard } from './wire.ts'

const ASKED = 'session/request_permission'
const ALLOW = { [ASKED]: () => ({ outcome: { outcome: 'selected', optionId: 'allow' } }) }
const SILENT = { [ASKED]: () => undefined }

/** Asks, and says what came of it. */
const asks = (): AgentPort =>
  defineAgent('asks', async function* (turn) {
    const { approved } = await turn.ask('x.approval.request', { message: 'May I?' })
    yield text(`approved: ${approved}`)
  })

async function ready(url: string, answers: Parameters<typeof Client.connect>[1] = {}): Promise<Client> {
  const client = await Client.connect(overSocket(url), answers)
  await client.initialize()
  return client
}

const said = (part: string) => (message: Heard) => message['params']?.update?.content?.text === part

verifies('acp-1.permission', 'an editor decided what was asked of somebody over another protocol', async () => {
  const { url } = await startServer(asks())
  const editor = await ready(url, ALLOW)
  const sessionId = await editor.open()
  await editor.say(sessionId, 'mine')
  const wire = await overWebSocket(url)
  await wire.follow(sessionId, 0)
  await wire.send({ type: 'input.text', text: 'theirs' })
  await wire.send({ type: 'response.create' })
  const question = await wire.next(
    ({ type, response_id }) => type === 'x.approval.request' && response_id !== wire.heard.find(isEnd)?.['response_id'],
  )
  // Who loads it meanwhile is not asked either.
  const other = await ready(url, ALLOW)
  await other.ask('session/load', { sessionId, cwd: '/project', mcpServers: [] })
  await wire.send({ type: 'x.approval.response', approval_id: question['approval_id'], approved: false })
  await Promise.all([editor.next(said('approved: false')), other.next(said('approved: false'))])
  expect(editor.heard.filter(({ method }) => method === ASKED)).toHaveLength(1)
  expect(other.heard.filter(({ method }) => method === ASKED)).toEqual([])
  const chunks = (client: Client): unknown => client.updates.filter(({ sessionUpdate }) => sessionUpdate.endsWith('message_chunk')).map(({ content }) => content.text as string) // prettier-ignore
  expect(chunks(editor)).toEqual(['approved: true', 'theirs', 'approved: false'])
  expect(chunks(other)).toEqual(['mine', 'approved: true', 'theirs', 'approved: false'])
})

for (const method of ['session/load', 'session/resume'])
  verifies(['acp-1.permission', 'acp-1.resume'], `who came back with ${method} was not asked what was open`, async () => {
    const { url } = await startServer(asks())
    const first = await ready(url, SILENT)
    const sessionId = await first.open()
    first.begin('session/prompt', { sessionId, prompt: [{ type: 'text', text: 'go' }] })
    await first.next((message) => message['method'] === ASKED)
    first.close()
    const second = await ready(url, ALLOW)
    const answer = await second.ask(method, { sessionId, cwd: '/project', mcpServers: [] })
    await second.next(said('approved: true'))
    const at = second.heard.findIndex((message) => message['method'] === ASKED)
    expect(at).toBeGreaterThan(second.heard.indexOf(answer))
  })

verifies('acp-1.permission', 'a question that somebody else had answered stayed on the screen', async () => {
  const { url } = await startServer(asks())
  const [first, second] = [await ready(url, SILENT), await ready(url, ALLOW)]
  const sessionId = await first.open()
  const prompt = first.say(sessionId, 'go')
  const asked = await first.next((message) => message['method'] === ASKED)
  await second.ask('session/resume', { sessionId, cwd: '/project' })
  expect((await prompt)['result']).toMatchObject({ stopReason: 'end_turn' })
  const cancelled = await first.next((message) => message['method'] === '$/cancel_request')
  expect(cancelled['params']).toEqual({ requestId: asked['id'] })
})

verifies('acp-1.client-tools', 'a prompt never ended whose tool a load had taken away', async () => {
  let go = (): void => undefined
  const gate = new Promise<void>((resolve) => (go = resolve))
  const late = defineAgent('late', async function* (turn) {
    yield text('begun ')
    await gate
    yield* caller().run(turn)
  })
  const client = await Client.connect(overStdio([late]))
  await client.initialize()
  const mcpServers = [{ name: 'm', command: process.execPath, args: ['test/agents/mcp/stdio.js'], env: [] }]
  const sessionId = await client.open({ mcpServers })
  const prompt = client.say(sessionId, 'add {"a":1,"b":2}')
  await client.next(said('begun '))
  await client.ask('session/load', { sessionId, cwd: '/project', mcpServers: [] })
  go()
  expect((await prompt)['result']).toMatchObject({ stopReason: 'end_turn' })
  expect(client.text).toContain('failed: ')
  expect(client.text).toContain('any more')
})

verifies('acp-1.load', 'what was said during two loads at once was told twice', async () => {
  let say = (): void => undefined
  const words = Array.from({ length: 40 }, (_, index) => `${index} `)
  const counts = defineAgent('counts', async function* () {
    for (const word of words) {
      yield text(word)
      await new Promise<void>((resolve) => setImmediate(resolve))
      say()
    }
  })
  const { url } = await startServer(counts)
  for (let at = 1; at < 40; at += 3) {
    const client = await ready(url)
    const sessionId = await client.open()
    let number = 0
    const reached = new Promise<void>((resolve) => (say = () => (++number === at ? resolve() : undefined)))
    const prompt = client.say(sessionId, randomUUID())
    await reached
    const load = (): Promise<Heard> => client.ask('session/load', { sessionId, cwd: '/project', mcpServers: [] })
    await Promise.all([load(), load(), load()])
    expect((await prompt)['result']).toMatchObject({ stopReason: 'end_turn' })
    const last = client.updates.findLastIndex(({ sessionUpdate }) => sessionUpdate === 'user_message_chunk')
    await expect.poll(() => client.updates.slice(last + 1).map(({ content }) => content?.text ?? '').join('')).toBe(words.join('')) // prettier-ignore
    client.close()
  }
})
