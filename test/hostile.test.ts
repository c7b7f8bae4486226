import { connect as tcp, type Socket } from 'node:net'
import { expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { demo } from '../src/agents/demo/index.ts'
import { endless } from './support/agents.ts'
import { startServer } from './support/server.ts'
import { say, textOf } from './support/talk.ts'
import { overWebSocket, type Heard, type Wire } from './support/wire.ts'

/** A session that must not notice what others do. */
async function bystander(url: string): Promise<{ unharmed(): Promise<void> }> {
  const wire = await overWebSocket(url)
  await wire.open()
  return {
    async unharmed() {
      expect(textOf(await say(wire, 'all well'))).toBe('You said: all well')
      expect((await fetch(`${url}/health`)).status).toBe(200)
    },
  }
}

async function raw(url: string) {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/uamp`)
  const heard: Heard[] = []
  let closed: number | undefined
  socket.on('message', (data: Buffer) => heard.push(JSON.parse(data.toString()) as Heard))
  socket.on('close', (code) => (closed = code))
  socket.on('error', () => undefined)
  await new Promise((resolve) => socket.once('open', resolve))
  return { socket, heard, closed: () => closed }
}

const long = 'x'.repeat(10 * 1024 * 1024)
const frames: [what: string, frame: string | Buffer, answer: { code: string } | number | 'nothing'][] = [
  ['what is not JSON', 'hello', { code: 'invalid_request' }],
  ['an empty frame', '', { code: 'invalid_request' }],
  ['an array', '[]', { code: 'invalid_request' }],
  ['a number', '42', { code: 'invalid_request' }],
  ['null', 'null', { code: 'invalid_request' }],
  ['an object without type', '{}', { code: 'invalid_request' }],
  ['a type that is no string', '{"type":{}}', { code: 'invalid_request' }],
  ['a wrong type of field', '{"type":"input.text","text":{"a":1}}', { code: 'invalid_request' }],
  ['a session that is no object', '{"type":"session.create","session":"x"}', { code: 'invalid_request' }],
  ['a depth of 100,000', '{"type":"input.text","text":' + '['.repeat(100_000) + ']'.repeat(100_000) + '}', { code: 'invalid_request' }],
  ['10 MiB of text', JSON.stringify({ type: 'input.text', text: long }), 1009],
  ['an unknown session', '{"type":"input.text","text":"x","session_id":"sess_none"}', { code: 'not_found' }],
  ['an unknown call', '{"type":"tool.result","call_id":"none","result":"1"}', { code: 'not_found' }],
  ['a binary frame', Buffer.from([1, 2, 3]), { code: 'invalid_request' }],
  ['an event of unknown type', '{"type":"what.is.this"}', 'nothing'],
]
test.each(frames)('a socket survives %s', async (_, frame, answer) => {
  const { url } = await startServer(demo())
  const other = await bystander(url)
  const { socket, heard, closed } = await raw(url)
  socket.send(JSON.stringify({ type: 'session.create' }))
  await expect.poll(() => heard.length).toBeGreaterThanOrEqual(2)
  socket.send(frame)
  if (typeof answer === 'number') {
    await expect.poll(closed).toBe(answer)
  } else {
    socket.send(JSON.stringify({ type: 'ping' }))
    await expect.poll(() => heard.at(-1)?.type).toBe('pong')
    const errors = heard.filter(({ type }) => type.endsWith('.error'))
    expect(errors.map((event) => event['error'].code)).toEqual(answer === 'nothing' ? [] : [answer.code])
    for (const event of errors) expect(event['error'].message.length).toBeGreaterThan(10)
  }
  await other.unharmed()
})

test('keys that come twice: the last one counts; __proto__ pollutes nothing', async () => {
  const { url } = await startServer(demo())
  const { socket, heard } = await raw(url)
  const session = '{"modalities":["text"],"extensions":{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}}'
  socket.send(`{"type":"ping","type":"session.create","__proto__":{"polluted":1},"session":${session}}`)
  await expect.poll(() => heard.length).toBeGreaterThanOrEqual(2)
  expect(heard[0]?.type).toBe('session.created')
  expect(JSON.stringify(heard[0])).toContain('"extensions":{"__proto__":{"polluted":1}')
  expect(({} as { polluted?: number }).polluted).toBeUndefined()
})

test('2,000 clients connect at once, and each is answered', { timeout: 60_000 }, async () => {
  const { url } = await startServer(demo())
  const other = await bystander(url)
  const answers = await Promise.all(
    Array.from({ length: 2000 }, async () => {
      const { socket, heard } = await raw(url)
      socket.send(JSON.stringify({ type: 'session.create' }))
      await expect.poll(() => heard.length, { timeout: 30_000, interval: 200 }).toBeGreaterThanOrEqual(2)
      socket.terminate()
      return heard[0]?.type
    }),
  )
  expect(new Set(answers)).toEqual(new Set(['session.created']))
  await other.unharmed()
})

/** A client that shakes hands, sends, and then never reads again. */
async function deaf(port: number, frames: readonly object[]): Promise<Socket> {
  const socket = tcp(port, '127.0.0.1')
  socket.write(
    'GET /uamp HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
  )
  await new Promise((resolve) => socket.once('data', resolve))
  socket.pause()
  for (const frame of frames) {
    const payload = Buffer.from(JSON.stringify(frame))
    const header =
      payload.length < 126
        ? Buffer.from([0x81, 0x80 | payload.length])
        : Buffer.from([0x81, 0xfe, payload.length >> 8, payload.length & 255])
    socket.write(Buffer.concat([header, Buffer.alloc(4), payload]))
  }
  return socket
}

test('a reader that stops reading stops its agent, is cut after a while, and others go on', { timeout: 30_000 }, async () => {
  const { agent, stopped } = endless()
  const { url, port, gateway } = await startServer([demo(), agent], { limits: { stallMs: 500, resumeWindowMs: 500 } })
  const other = await bystander(url)
  const socket = await deaf(port, [{ type: 'session.create', agent: 'endless' }, { type: 'response.create' }])
  await expect.poll(() => gateway.openResponses).toBe(1)
  const before = process.memoryUsage().rss
  await other.unharmed()
  // It waits for its reader, then the reader is cut, and nobody comes back in time.
  await stopped
  expect(process.memoryUsage().rss - before).toBeLessThan(100 * 1024 * 1024)
  await expect.poll(() => gateway.openResponses).toBe(0)
  socket.destroy()
  await other.unharmed()
})

test('a half-open socket is noticed', { timeout: 30_000 }, async () => {
  const { url, port } = await startServer(demo(), { limits: { pingIntervalMs: 200, pongTimeoutMs: 200 } })
  const other = await bystander(url)
  const socket = await deaf(port, [{ type: 'session.create' }])
  const closed = new Promise((resolve) => socket.once('close', resolve))
  socket.resume()
  await closed
  await other.unharmed()
})

test('too much input without a response is refused, and a response still works', async () => {
  const { url } = await startServer(demo(), { limits: { pendingInputs: 3 } })
  const wire: Wire = await overWebSocket(url)
  await wire.open()
  for (let n = 0; n < 3; n++) expect(await wire.send({ type: 'input.text', text: `${n}` })).toBeUndefined()
  expect(await wire.send({ type: 'input.text', text: 'one more' })).toMatchObject({ code: 'too_large', details: { max_inputs: 3 } })
  await wire.send({ type: 'response.create' })
  await wire.next('response.done')
})
