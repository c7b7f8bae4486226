/** Connections that break in mid-answer, and clients that come back. */
import { expect, test } from 'vitest'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import type { AgentPort } from '../../src/core/ports/agent.ts'
import type { Draft } from '../../src/protocol/events.ts'
import { startChild } from '../support/child.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'
import { temporaryFolder } from './folder.ts'
import { OmniaClient, type Heard, type HeardFrame } from './omnia-client.ts'

const text = (said: string): Draft => ({ type: 'response.delta', delta: { type: 'text', text: said } })
const told = (client: OmniaClient): unknown[] =>
  (client.heard as Heard[]).slice(1).map(({ type, content, error }) => [type, content ?? error.code])

/** Says one half of it, then the other when it is told to. Whatever else it is asked it repeats. */
function halting(first: readonly Draft[], second: readonly Draft[]) {
  let go!: () => void
  const gate = new Promise<void>((resolve) => (go = resolve))
  const agent = defineAgent(
    'demo',
    async function* ({ messages }) {
      const said = messages.at(-1)?.content
      if (said !== 'go') return yield text(`${said}`)
      yield* first
      await gate
      yield* second
    },
    { capabilities: { modalities: ['text', 'audio'] } },
  )
  return { agent, go }
}

async function breakOff(url: string, { socket }: OmniaClient): Promise<void> {
  socket.terminate()
  await expect.poll(async () => (await fetch(`${url}/metrics`)).text()).toMatch(/sockets\S* 0$/m)
}

/** Begins an answer, and breaks off once something of that type has come. */
async function broken(url: string, type: string, path = '/omnia?agent=demo'): Promise<OmniaClient> {
  const client = await OmniaClient.open(url, { path })
  await client.ask({ type: 'message', session_id: client.sessionId, content: 'go' }, type)
  await breakOff(url, client)
  return client
}

const idle = (url: string) => expect.poll(async () => (await fetch(`${url}/metrics`)).text()).toMatch(/responses\S* 0$/m)
const back = (url: string, { sessionId }: OmniaClient, more = '') =>
  OmniaClient.open(url, { path: `/omnia?agent=demo&resume=${sessionId}${more}` })

verifies('omnia.resume-call', 'an answer that ended while its client was away, and the server stopped, was never ended', async () => {
  const data = temporaryFolder()
  const { agent, go } = halting([text('before ')], [text('after')])
  const start = (on: AgentPort) => startServer(on, { data })
  const first = await start(agent)
  const client = await broken(first.url, 'chunk')
  go()
  await idle(first.url)
  await first.close({ graceMs: 0 })
  const second = await start(agent)
  const returned = await back(second.url, client)
  await returned.next('done')
  expect((returned.heard[0] as Heard)['connected'].resumed).toBe(true)
  expect(told(returned)).toEqual([
    ['chunk', 'after'],
    ['done', 'before after'],
  ])
  // It was told once.
  await breakOff(second.url, returned)
  const again = await back(second.url, client)
  await again.say('hi', { session_id: client.sessionId })
  expect(told(again)).toEqual([
    ['chunk', 'hi'],
    ['done', 'hi'],
  ])
})

verifies('omnia.resume-call', 'of an answer that died with the process nobody heard again', async () => {
  const data = temporaryFolder()
  const first = await startChild(data)
  const client = await OmniaClient.open(first.url)
  client.send({ type: 'message', session_id: client.sessionId, content: '/count 100000 5' })
  for (let count = 0; count < 50; count++) await client.next('chunk')
  await first.kill()
  const second = await startChild(data)
  const returned = await back(second.url, client)
  const error = (await returned.next('error'))['error']
  expect(error).toMatchObject({ code: 'AGENT_UNAVAILABLE', details: { code: 'interrupted' } })
  expect(await returned.next('done')).toMatchObject({ content: expect.stringMatching(/^1 2 3 /), ext: { status: 'failed' } })
  await breakOff(second.url, returned)
  const again = await back(second.url, client)
  await again.say('hi', { session_id: client.sessionId })
  expect(told(again).at(-1)).toEqual(['done', 'You said: hi'])
  expect((again.heard as Heard[]).filter(({ type }) => type === 'error' || type === 'done')).toHaveLength(1)
})

verifies('omnia.resume-call', 'an end that was lost in a kill was never told', async () => {
  const data = temporaryFolder()
  const first = await startChild(data)
  const client = await OmniaClient.open(first.url)
  const { ext } = (await client.say('hi', { session_id: client.sessionId })).at(-1) as Heard
  await first.kill()
  // Whether that end had arrived, the server cannot know.
  const second = await startChild(data)
  const returned = await back(second.url, client)
  expect(await returned.next('done')).toMatchObject({ content: 'You said: hi', ext: { response_id: ext.response_id, status: 'completed' } })
  returned.send({ type: 'hangup', session_id: client.sessionId })
  await returned.closed
  await second.kill()
  const third = await startChild(data)
  const again = await back(third.url, client)
  await again.say('ho', { session_id: client.sessionId })
  expect((again.heard as Heard[]).flatMap(({ type, content }) => (type === 'done' ? [content] : []))).toEqual(['You said: ho'])
})

test('what had been answered before a kill was asked again, and kept the client from speaking', async () => {
  const data = temporaryFolder()
  const first = await startChild(data)
  const client = await OmniaClient.open(first.url)
  await breakOff(first.url, client)
  // From here on a place is kept that lies before everything that follows.
  const came = await back(first.url, client)
  const tools = [{ type: 'function', function: { name: 'weather' } }]
  came.send({ type: 'message', session_id: client.sessionId, content: '/tool weather {}', ext: { tools } })
  const { tool_call: call } = await came.next('tool_call')
  came.send({ type: 'tool_call_ack', tool_call_ack: { call_id: call.id } })
  came.send({ type: 'tool_result', tool_result: { call_id: call.id, result: 'sunny' } })
  await came.next('done')
  await first.kill()
  const second = await startChild(data)
  const returned = await back(second.url, client)
  returned.send({ type: 'message', session_id: client.sessionId, content: 'and now?' })
  while ((await returned.next('done'))['content'] !== 'You said: and now?');
  expect((returned.heard as Heard[]).filter(({ type }) => type === 'tool_call' || type === 'error')).toEqual([])
})

test('a break in mid-speech lost a piece, and what had been said of its words', async () => {
  const piece = (byte: number): Draft[] => [
    { type: 'audio.delta', audio: Buffer.alloc(4, byte).toString('base64'), format: 'pcm16' },
    { type: 'transcript.delta', transcript: `${byte} ` },
  ]
  for (const binary of [false, true]) {
    const { agent, go } = halting([...piece(1), ...piece(2)], [...piece(3), { type: 'audio.done' }])
    const { url } = await startServer(agent)
    const bytes = (client: OmniaClient): number[] =>
      client.heard.flatMap((each) => {
        if (each.type === 'binary') return [...(each as HeardFrame).payload.subarray(0, 1)]
        return each.type === 'media_chunk' ? [...Buffer.from((each as Heard)['media_chunk'].data as string, 'base64').subarray(0, 1)] : []
      })
    const client = await broken(url, binary ? 'binary' : 'media_chunk', `/omnia?agent=demo&binary=${binary}`)
    expect(bytes(client)).toEqual([1])
    const returned = await back(url, client, `&binary=${binary}`)
    go()
    const done = await returned.next('done')
    expect(bytes(returned)).toEqual([2, 3])
    expect(done).toMatchObject({ content: '1 2 3 ', ext: { status: 'completed' } })
  }
})

verifies('omnia.hangup', 'who hung up is not told what he missed', async () => {
  const { agent } = halting([text('before ')], [])
  const { url } = await startServer(agent)
  const client = await OmniaClient.open(url)
  await client.ask({ type: 'message', session_id: client.sessionId, content: 'go' }, 'chunk')
  client.send({ type: 'hangup' })
  await client.closed
  await idle(url)
  const returned = await back(url, client)
  await returned.say('hi', { session_id: client.sessionId })
  expect(told(returned)).toEqual([
    ['chunk', 'hi'],
    ['done', 'hi'],
  ])
})
