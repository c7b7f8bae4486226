import { once } from 'node:events'
import { expect } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { text } from '../../src/core/agent-kit/drafts.ts'
import { OMNIA_LIMITS } from '../../src/transports/omnia/options.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'
import { OmniaClient } from './omnia-client.ts'

/** Gives back the media that it was shown. */
const mirror = (seen: unknown[]) =>
  defineAgent('demo', async function* ({ messages }) {
    for (const item of messages.at(-1)?.content_items ?? []) {
      if (item.type === 'text' || item.type === 'thinking' || item.type === 'tool_call' || item.type === 'tool_result') continue
      seen.push(item)
      yield { type: 'response.delta', delta: item }
    }
  })

verifies('omnia.media-fields', 'what a client says of its media reaches the agent, and comes back', async () => {
  const seen: unknown[] = []
  const { url } = await startServer(mirror(seen))
  const client = await OmniaClient.open(url)
  const source = { url: 'https://example.com/it' }
  const fields = [
    ['image', { mime_type: 'image/png', filename: 'a.png', size_bytes: 10, width: 640, height: 480 }],
    ['audio', { mime_type: 'audio/mp3', filename: 'b.mp3', size_bytes: 11, duration_ms: 1_500, sample_rate: 44_100, channels: 2 }],
    ['video', { mime_type: 'video/mp4', filename: 'c.mp4', size_bytes: 12, width: 1_280, height: 720, duration_ms: 2_000 }],
    ['file', { mime_type: 'text/plain', filename: 'd.txt', size_bytes: 13 }],
  ] as const
  const parts = fields.map(([type, media]) => ({ type, media: { ...source, ...media } }))
  const done = (await client.say('', { parts })).at(-1)
  for (const [index, [, { mime_type: _, ...known }]] of fields.entries()) expect(seen[index]).toMatchObject(known)
  expect(done?.['parts']).toEqual(parts)
})

verifies('omnia.upload-failed', 'an upload that comes to nothing is told on the socket', async () => {
  const { url } = await startServer(demo())
  const client = await OmniaClient.open(url)
  const upload_request = { filename: 'a.txt', mime_type: 'text/plain', size_bytes: 5 }
  const ready = (await client.ask({ type: 'upload_request', session_id: client.sessionId, upload_request }, 'upload_ready'))['upload_ready']
  const put = await fetch(ready.upload_url as string, { method: 'PUT', body: 'four' })
  expect(put.status).toBe(400)
  const { error } = await client.next('error')
  expect(error).toMatchObject({ code: 'UPLOAD_FAILED', details: { upload_id: ready.upload_id, storage_ref: ready.storage_ref } })
  expect((await client.say('hi')).at(-1)?.['content']).toBe('You said: hi')
})

const broken = defineAgent('demo', async function* ({ messages }) {
  if (messages.at(-1)?.content === 'fatal') {
    yield { type: 'response.error', error: { code: 'tool_failed', message: 'The tool broke' } }
    return
  }
  yield { type: 'response.delta', delta: { type: 'tool_call', tool_call: { id: 'c1', name: 'look', arguments: '{}' } } }
  yield { type: 'response.delta', delta: { type: 'tool_result', tool_result: { call_id: 'c1', result: 'no eyes', is_error: true } } }
  yield text('I could not look.')
})

verifies(
  ['omnia.tool-error', 'omnia.errors'],
  'a tool that failed is TOOL_ERROR, in the answer that ends with it and where it is shown',
  async () => {
    const { url } = await startServer(broken, { omnia: { toolMessages: true } })
    const client = await OmniaClient.open(url)
    const fatal = await client.fails({ type: 'message', session_id: client.sessionId, content: 'fatal' })
    expect(fatal).toMatchObject({ code: 'TOOL_ERROR', message: 'The tool broke', details: { code: 'tool_failed' } })
    const said = await client.say('go on')
    expect(said.find(({ type }) => type === 'tool_result')?.['tool_result']).toEqual({ id: 'c1', error: 'no eyes', code: 'TOOL_ERROR' })
    // The answer went on, so its failure is none of the answer.
    expect(said.map(({ type }) => type)).not.toContain('error')
    expect(said.at(-1)?.['content']).toBe('I could not look.')
  },
)

verifies('omnia.ping', 'a silent client is pinged, and cut without an answer, by the numbers of this protocol', async () => {
  expect([OMNIA_LIMITS.pingIntervalMs, OMNIA_LIMITS.pongTimeoutMs]).toEqual([30_000, 60_000])
  // The server's own numbers are for its other sockets.
  const limits = { pingIntervalMs: 3_600_000, pongTimeoutMs: 3_600_000 }
  const { url } = await startServer(demo(), { limits, omnia: { limits: { pingIntervalMs: 50, pongTimeoutMs: 50 } } })
  const answers = await OmniaClient.open(url)
  await once(answers.socket, 'ping')
  const silent = await OmniaClient.open(url)
  silent.socket.pong = () => undefined
  Object.assign(silent.socket, { _autoPong: false })
  expect((await silent.closed).code).toBe(1006)
  expect((await answers.say('still here')).at(-1)?.['content']).toBe('You said: still here')
})
