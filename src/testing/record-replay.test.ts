import { expect, test } from 'vitest'
import { startUpstream } from '../../test/providers/upstream/index.ts'
import { fetchHttp } from '../core/http/fetch-http.ts'
import type { HttpAnswer, HttpClient, HttpRequest } from '../core/ports/http.ts'
import { recordHttp } from './record-http.ts'
import { readRecording } from './recording.ts'
import { replayHttp } from './replay-http.ts'

const SECRET = 'sk-very-secret'

function post(url: string, model: string, options: Partial<HttpRequest> = {}): HttpRequest {
  return {
    url: `${url}/openai/v1/chat/completions`,
    method: 'POST',
    headers: { Authorization: `Bearer ${SECRET}`, 'X-Api-Key': SECRET, 'content-type': 'application/json', 'x-client': 'ours' },
    body: JSON.stringify({ model, messages: [{ role: 'user', content: 'Grüße' }], stream: true }),
    signal: new AbortController().signal,
    maxBytes: 1024 * 1024,
    timeouts: { firstByteMs: 10_000, idleMs: 10_000, totalMs: 20_000 },
    ...options,
  }
}

async function read({ status, headers, body }: HttpAnswer) {
  const chunks: Uint8Array[] = []
  for await (const chunk of body) chunks.push(chunk)
  return { status, type: headers.get('content-type'), chunks, bytes: Buffer.concat(chunks) }
}

/** A client whose answer consists of these chunks. */
const saying = (...chunks: Uint8Array[]): HttpClient => ({
  request: async () => ({
    status: 200,
    headers: new Headers({ 'x-ratelimit-remaining-tokens': '7', 'set-cookie': SECRET }),
    body: (async function* () {
      yield* chunks
    })(),
  }),
})

test('what was recorded is played back byte for byte, without the secrets', async () => {
  const { url } = await startUpstream()
  const lines: string[] = []
  const http = recordHttp(fetchHttp(), { write: (line) => void lines.push(line) })
  const live = await read(await http.request(post(url, 'text+split')))
  const refused = await read(await http.request(post(url, 'error-429')))

  const replay = replayHttp(lines.join('\n'))
  const again = await read(await replay.request(post('http://elsewhere:1', 'text+split')))
  expect(again).toEqual(live)
  expect(again.bytes.toString('utf8')).toContain('世界')
  expect(await read(await replay.request(post('http://elsewhere:1', 'error-429')))).toEqual(refused)

  expect(lines.join('\n')).not.toContain(SECRET)
  const [first] = readRecording(lines)
  expect(first?.request.headers).toEqual({
    authorization: '[left out]',
    'x-api-key': '[left out]',
    'content-type': 'application/json',
    'x-client': 'ours',
  })
  expect(first?.end).toEqual({ type: 'end', id: 1, at: expect.any(Number) })
})

test('a character cut in two survives, and secrets of answers and addresses do not', async () => {
  const lines: string[] = []
  const halves = [Buffer.from('ü').subarray(0, 1), Buffer.from('ü').subarray(1), Buffer.from('\ufeffwhole')]
  const clock = [0, 5, 30, 31, 32, 33, 40]
  const http = recordHttp(saying(...halves), { write: (line) => void lines.push(line), now: () => clock.shift() ?? 99 })
  await read(await http.request(post('https://user:pass@host', 'm', { url: 'https://user:pass@host/v1?alt=sse&key=sk-1' })))
  expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual([
    expect.objectContaining({ type: 'request', id: 1, at: 5, url: 'https://host/v1?alt=sse&key=%5Bleft+out%5D' }),
    {
      type: 'answer',
      id: 1,
      at: 30,
      status: 200,
      headers: { 'x-ratelimit-remaining-tokens': '7', 'set-cookie': '[left out]' },
    },
    { type: 'chunk', id: 1, at: 31, base64: 'ww==' },
    { type: 'chunk', id: 1, at: 32, base64: 'vA==' },
    { type: 'chunk', id: 1, at: 33, text: '\ufeffwhole' },
    { type: 'end', id: 1, at: 40 },
  ])
  const replay = replayHttp(lines)
  const { chunks } = await read(await replay.request(post('', 'm', { url: 'https://host/v1?key=sk-2&alt=sse' })))
  expect(chunks.map((chunk) => Buffer.from(chunk))).toEqual(halves)
})

test('a broken connection breaks again', async () => {
  const upstream = await startUpstream()
  const lines: string[] = []
  const http = recordHttp(fetchHttp(), { write: (line) => void lines.push(line) })
  await expect(read(await http.request(post(upstream.url, 'text+cut')))).rejects.toThrow()
  const closed = post('http://127.0.0.1:1', 'text')
  await expect(http.request(closed)).rejects.toThrow()
  const left = await http.request(post(upstream.url, 'text+stall'))
  for await (const _ of left.body) break
  await upstream.until(() => upstream.aborts === 1)

  const replay = replayHttp(lines)
  await expect(read(await replay.request(post(upstream.url, 'x')))).rejects.toThrow(/terminated/)
  await expect(replay.request(closed)).rejects.toThrow(/fetch failed/)
  await expect(read(await replay.request(post(upstream.url, 'x')))).rejects.toThrow('The recording stops in the middle of the answer')
  await expect(replay.request(post(upstream.url, 'x'))).rejects.toThrow(/no answer left for POST/)
})

test('overlapping exchanges are kept apart, and each answer is given once', async () => {
  const { url } = await startUpstream()
  const lines: string[] = []
  const http = recordHttp(fetchHttp(), { write: (line) => void lines.push(line) })
  const models = ['text', 'length', 'cached']
  const live = await Promise.all(models.map(async (model) => read(await http.request(post(url, model)))))
  expect(readRecording(lines).map(({ request }) => request.id)).toEqual([1, 2, 3])

  const replay = replayHttp(lines, { match: (recorded, { body }) => recorded.text === body })
  for (const [at, model] of [...models.entries()].reverse()) {
    expect(await read(await replay.request(post(url, model)))).toEqual(live[at])
  }
})

test('the exchange waits for the writer', async () => {
  const order: string[] = []
  const write = async (line: string) => {
    await new Promise(setImmediate)
    order.push((JSON.parse(line) as { type: string }).type)
  }
  const answer = await recordHttp(saying(Buffer.from('a')), { write }).request(post('http://x', 'm'))
  order.push('answered')
  for await (const _ of answer.body) order.push('read')
  expect(order).toEqual(['request', 'answer', 'answered', 'chunk', 'read', 'end'])
})

test('plays at the recorded pace if it is given a way to wait, and stops when aborted', async () => {
  const clock = [0, 0, 10, 25, 60, 60]
  const lines: string[] = []
  const recorder = recordHttp(saying(Buffer.from('a'), Buffer.from('b')), {
    write: (line) => void lines.push(line),
    now: () => clock.shift() ?? 0,
  })
  await read(await recorder.request(post('http://x', 'm')))

  const waited: number[] = []
  const paced = replayHttp(lines, { wait: async (ms) => void waited.push(ms) })
  await read(await paced.request(post('http://x', 'm')))
  expect(waited).toEqual([10, 15, 35])

  const aborting = new AbortController()
  const { body } = await replayHttp(lines).request(post('http://x', 'm', { signal: aborting.signal }))
  const reading = (async () => {
    for await (const _ of body) aborting.abort()
  })()
  await expect(reading).rejects.toMatchObject({ name: 'AbortError' })
})

test.each([
  ['{"type":"request"', 'Line 2 of the recording is not JSON'],
  ['{"type":"note","id":1}', 'Line 2 of the recording is not a request, answer, chunk or end with an id'],
  ['{"type":"chunk","id":9,"at":0,"text":"x"}', 'Line 2 of the recording: no request has the id 9'],
  ['null', 'Line 2 of the recording is not a request, answer, chunk or end with an id'],
])('a recording with the line %s is refused', (line, message) => {
  expect(() => readRecording(`\n${line}\n`)).toThrow(new SyntaxError(message))
})
