import { expect, test } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'
import { frame, OmniaClient } from './omnia-client.ts'

const media = (fields: object) => ({ type: 'message', parts: [{ type: 'image', media: { mime_type: 'image/png', ...fields } }] })
const upload = (fields: object) => ({
  type: 'upload_request',
  upload_request: { filename: 'a.png', mime_type: 'image/png', size_bytes: 3, ...fields },
})

const MISTAKES: readonly (readonly [name: string, message: object | string | Uint8Array, said: string])[] = [
  ['no JSON', '{', 'not JSON'],
  ['no object', '[1]', 'JSON object'],
  ['too deep', '['.repeat(100), 'nest at most 64'],
  ['no type', {}, '"type"'],
  ['an unknown type', { type: 'shout' }, '"type"'],
  ['nothing to say', { type: 'message' }, '"content" or "parts"'],
  ['content that is no text', { type: 'message', content: 7 }, '"content" must be a string'],
  ['an id that is too long', { type: 'message', content: 'x', session_id: 'x'.repeat(300) }, '"session_id" must be at most 256'],
  ['an id that is no text', '{"type":"message","content":"x","session_id":"\\ud800"}', '"session_id" is not well-formed text'],
  ['a part of no kind', { type: 'message', parts: [{ type: 'smell' }] }, '"parts.0.type"'],
  ['text without text', { type: 'message', parts: [{ type: 'text' }] }, '"parts.0.text"'],
  ['an image without media', { type: 'message', parts: [{ type: 'image' }] }, '"parts.0.media"'],
  ['media without a type', { type: 'message', parts: [{ type: 'image', media: { data: 'aGk=' } }] }, '"parts.0.media.mime_type"'],
  ['media from nowhere', media({}), 'one of "data", "url" and "storage_ref"'],
  ['media from two places', media({ data: 'aGk=', url: 'https://example.com' }), 'one of "data", "url" and "storage_ref"'],
  ['bad base64', media({ data: '%%%%' }), '"parts.0.media.data" is not base64'],
  ['base64 with a hole', media({ data: 'aGk=aGk=' }), 'not base64'],
  ['base64 that was cut', media({ data: 'aGk' }), 'not base64'],
  ['a file as URL', media({ url: 'file:///etc/passwd' }), 'must be an http(s) URL'],
  ['a reference to nothing', media({ storage_ref: 'omnia://sessions/a/media/med-b' }), 'no such upload'],
  ['a reference with a path', media({ storage_ref: 'omnia://sessions/../../etc/media/med-passwd' }), 'not a reference'],
  ['a reference of another kind', media({ storage_ref: 's3://bucket/key' }), 'not a reference'],
  ['a file that is a path', media({ data: 'aGk=', filename: '../../etc/passwd' }), '"parts.0.media.filename" must be the name of a file'],
  ['a file with a hidden end', media({ data: 'aGk=', filename: 'a.png\0.exe' }), '"parts.0.media.filename" must be the name of a file'],
  [
    'media of a type that is none',
    media({ data: 'aGk=', mime_type: 'image/png\r\nx: y' }),
    '"parts.0.media.mime_type" is not a media type',
  ],
  ['a detail that is none', media({ data: 'aGk=', detail: 'ultra' }), '"parts.0.media.detail"'],
  ['a name that is no text', JSON.stringify(upload({ filename: 'a\ud800' })), '"filename" is not well-formed text'],
  ['no upload', { type: 'upload_request' }, '"upload_request"'],
  ['an upload of nothing', upload({ size_bytes: 0 }), '"size_bytes" must be positive'],
  ['an upload of less', upload({ size_bytes: -1 }), '"size_bytes" must be positive'],
  ['an upload of a part', upload({ size_bytes: 1.5 }), '"size_bytes" must be positive and whole'],
  ['a type that is none', upload({ mime_type: 'image/png\r\nx: y' }), '"mime_type"'],
  ['a type of any kind', upload({ mime_type: '*/*' }), '"mime_type"'],
  ['a type with a quote that does not end', upload({ mime_type: 'a/b; c="d' }), '"mime_type"'],
  ['a type with a line in quotes', upload({ mime_type: 'a/b; c="d\r\ne"' }), '"mime_type"'],
  ['an acknowledgement of what', { type: 'tool_call_ack' }, '"tool_call_ack"'],
  ['a result for no call', { type: 'tool_result', tool_result: { call_id: 'none', result: 1 } }, 'no pending tool call'],
  ['a rejection of no call', { type: 'tool_call_nack', tool_call_nack: { call_id: 'none' } }, 'no pending tool call'],
  ['a tool without a name', { type: 'message', content: 'x', ext: { tools: [{ type: 'function' }] } }, '"ext.tools.0.function"'],
  ['binary that is no frame', new Uint8Array(3), 'header of 32 bytes'],
  ['wrong magic', new Uint8Array(40), 'begins with "OMNI"'],
  ['a binary upload', frame({ kind: 2 }), 'Upload over HTTP'],
  ['a binary frame of no kind', frame({ kind: 9 }), 'unknown binary message type'],
  ['a compressed frame', frame({ flags: 1 }), 'Compressed'],
  ['a frame whose sound has no number', frame({ meta: { sample_rate: 'fast' } }), '"sample_rate"'],
]

test('every mistake is told, and nothing else happens', async () => {
  const { url, logged } = await startServer(demo())
  const client = await OmniaClient.open(url)
  for (const [name, message, said] of MISTAKES) {
    const error = await client.fails(message)
    expect([name, error.code, error.message]).toEqual([name, 'INVALID_MESSAGE', expect.stringContaining(said)])
  }
  expect((await client.say('/history')).at(-1)?.['content']).toBe('user: /history')
  expect(logged.filter(({ level }) => level === 'error')).toEqual([])
})

verifies('omnia.upload-names', 'a filename that is a path is refused, over the socket and over HTTP', async () => {
  const { url } = await startServer(demo())
  const client = await OmniaClient.open(url)
  for (const filename of ['../../etc/passwd', '/etc/passwd', '..', '.', '', 'a/b', 'a\\b', 'nul\0.png', 'a\r\nb', 'x'.repeat(256)]) {
    expect(await client.fails(upload({ filename }))).toMatchObject({
      code: 'INVALID_MESSAGE',
      message: expect.stringContaining('"filename"'),
    })
    const body = JSON.stringify({ session_id: client.sessionId, filename, mime_type: 'image/png', size_bytes: 3 })
    expect((await fetch(`${url}/media/request-upload`, { method: 'POST', body })).status).toBe(400)
  }
})

test('a session that is no text was an error of the server', async () => {
  const { url } = await startServer(demo())
  const body = '{"session_id":"\\ud800","filename":"a","mime_type":"a/b","size_bytes":3}'
  const response = await fetch(`${url}/media/request-upload`, { method: 'POST', body })
  expect([response.status, await response.json()]).toMatchObject([400, { error: { code: 'INVALID_MESSAGE' } }])
})

test('an upload without end is too large, and nothing else', async () => {
  const { url } = await startServer(demo())
  const client = await OmniaClient.open(url)
  expect(await client.fails(upload({ size_bytes: 1e300 }))).toMatchObject({
    code: 'UPLOAD_FAILED',
    message: 'An upload may have 10485760 bytes',
  })
})

test('paths that lead out of the media are not found', async () => {
  const { url } = await startServer(demo())
  for (const path of ['upload/upl-..%2f..%2fetc', 'upload/..%2f..%2fetc%2fpasswd', 'upload/upl-%00']) {
    expect((await fetch(`${url}/media/${path}`, { method: 'PUT', body: 'x' })).status).toBe(404)
  }
  for (const path of ['download/a/med-..%2f..%2fetc%2fpasswd', 'info/..%2f..%2f/med-x', 'download/a/b']) {
    expect((await fetch(`${url}/media/${path}`)).status).toBe(404)
  }
  expect((await fetch(`${url}/media/upload/upl-x`)).status).toBe(405)
})
