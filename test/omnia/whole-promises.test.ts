/** Requirements whose text promises a whole table: every row of it. */
import { expect } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'
import { OmniaClient } from './omnia-client.ts'

verifies('omnia.parts', 'every type of part, by its bytes and by its URL; and content counts where there are no parts', async () => {
  const seen: unknown[] = []
  const agent = defineAgent('demo', async function* ({ messages }) {
    seen.push(messages.at(-1)?.content_items ?? messages.at(-1)?.content)
  })
  const { url } = await startServer(agent)
  const client = await OmniaClient.open(url)
  const mimes = { image: 'image/webp', audio: 'audio/ogg', video: 'video/webm', file: 'application/pdf' }
  const media = Object.entries(mimes).flatMap(([type, mime_type]) =>
    [{ data: 'aGk=' }, { url: 'https://example.com/a' }].map((source) => ({ type, source, mime_type })),
  )
  const parts = media.map(({ type, source, mime_type }) => ({ type, media: { ...source, mime_type } }))
  await client.say('not this', { parts: [{ type: 'text', text: 'first' }, ...parts, { type: 'text', text: 'last' }] })
  const items = media.map(({ type, source, mime_type }) => {
    const format = type === 'file' ? { mime_type } : { format: mime_type.split('/')[1] }
    return expect.objectContaining({ type, [type]: 'data' in source ? source.data : source, ...format })
  })
  expect(seen).toEqual([[{ type: 'text', text: 'first' }, ...items, { type: 'text', text: 'last' }]])
  await client.say('this', { parts: [] })
  expect(JSON.stringify(seen[1])).toContain('this')
})

verifies('omnia.errors', 'every code of the protocol, each on the same connection, which is answered afterwards', async () => {
  const { url } = await startServer(demo(), { omnia: { limits: { uploadBytes: 10 } } })
  const client = await OmniaClient.open(url)
  const say = (content: string) => ({ type: 'message', session_id: client.sessionId, content })
  const upload = (size_bytes: number) => ({
    type: 'upload_request',
    upload_request: { filename: 'a', mime_type: 'text/plain', size_bytes },
  })
  const failures: [object | string, string][] = [
    ['{', 'INVALID_MESSAGE'],
    [{ type: 'nothing' }, 'INVALID_MESSAGE'],
    [say('/error provider_error'), 'PROVIDER_ERROR'],
    [say('/error tool_failed'), 'TOOL_ERROR'],
    [say('/error internal'), 'INTERNAL_ERROR'],
    [upload(11), 'UPLOAD_FAILED'],
  ]
  for (const [message, code] of failures) {
    expect([message, await client.fails(message)]).toEqual([message, expect.objectContaining({ code, message: expect.any(String) })])
    expect((await client.say('hi')).at(-1)?.['content']).toBe('You said: hi')
  }
  // A message begins a new session in place of one that is not there, so only a request over HTTP can miss one.
  const body = JSON.stringify({ session_id: 'none', ...upload(3).upload_request })
  const missed = await fetch(`${url}/media/request-upload`, { method: 'POST', body })
  expect([missed.status, await missed.json()]).toEqual([404, { error: expect.objectContaining({ code: 'SESSION_NOT_FOUND' }) }])
  const off = await OmniaClient.open((await startServer(demo(), { omnia: { blobs: undefined as never } })).url)
  expect((await off.fails(upload(3))).code).toBe('MEDIA_NOT_ENABLED')
  expect((await off.say('hi')).at(-1)?.['content']).toBe('You said: hi')
})
