/** The bounds of the server, over HTTP/2: the same as over HTTP/1.1, stream by stream. */
import { once } from 'node:events'
import { connect as connectHttp2, type ClientHttp2Session, type IncomingHttpHeaders, type OutgoingHttpHeaders } from 'node:http2'
import { connect as connectTls } from 'node:tls'
import { expect, onTestFinished, test } from 'vitest'
import type { HttpRoute, Route } from '../../src/core/ports/transport.ts'
import { Authority } from '../support/certificates.ts'
import { END_HEADERS, INITIAL_WINDOW, number, RawHttp2, setting, TYPE } from '../support/http2-frames.ts'
import { testServer, type TestServerOptions } from '../support/test-server.ts'
import { verifies } from '../support/verifies.ts'

const authority = new Authority()
const tls = authority.issue()
const tokens = { alice: 'wonderland-7b1f9c04' }
const BEARER = { authorization: `Bearer ${tokens.alice}` }

const read: Route = {
  method: 'POST',
  path: '/read',
  access: 'request',
  handle: async (request) => Response.json({ bytes: (await request.text()).length }),
}
const get = (path: string, handle: Extract<HttpRoute, { access: 'request' }>['handle']): Route => ({ method: 'GET', path, access: 'request', handle }) // prettier-ignore

async function start(options: TestServerOptions) {
  const server = await testServer({ tls, ...options })
  const open = (): ClientHttp2Session => {
    const session = connectHttp2(server.url, { ca: authority.pem })
    session.on('error', () => undefined)
    onTestFinished(() => session.destroy())
    return session
  }
  return { ...server, open }
}

/** The answer to one request. */
async function ask(session: ClientHttp2Session, headers: OutgoingHttpHeaders, body?: string) {
  const request = session.request(headers, { endStream: body === undefined })
  if (body !== undefined) request.end(body)
  const [answer] = (await once(request, 'response')) as [IncomingHttpHeaders & { ':status': number }]
  let text = ''
  for await (const chunk of request.setEncoding('utf8')) text += String(chunk)
  return { status: answer[':status'], headers: answer, text }
}

/** An endless stream, and when its agent has been stopped. */
function endless() {
  let stop!: () => void
  const stopped = new Promise<void>((resolve) => (stop = resolve))
  const seen = { bytes: 0 }
  const route = get('/endless', async function* () {
    try {
      for (;;) {
        seen.bytes += 1_000
        yield `data: ${'x'.repeat(1_000)}\n\n`
      }
    } finally {
      stop()
    }
  })
  return { route, stopped, seen }
}

verifies('h2.headers', 'too many headers are refused, and far too many are not even read', async () => {
  const { open } = await start({ limits: { headerCount: 20 } })
  const many = (count: number): OutgoingHttpHeaders => Object.fromEntries(Array.from({ length: count }, (_, i) => [`x-${i}`, 'y']))
  const session = open()
  expect((await ask(session, { ':path': '/health', ...many(20) })).status).toBe(200)
  expect((await ask(session, { ':path': '/health', ...many(21) })).status).toBe(431)
  await expect(ask(session, { ':path': '/health', ...many(200) })).rejects.toThrow(/ENHANCE_YOUR_CALM/)
})

verifies('h2.headers', 'headers that are too large are refused', async () => {
  const { open } = await start({ limits: { headerBytes: 2_000 } })
  const session = open()
  expect((await ask(session, { ':path': '/health', 'x-large': 'x'.repeat(1_500) })).status).toBe(200)
  expect((await ask(session, { ':path': '/health', 'x-large': 'x'.repeat(2_500) })).status).toBe(431)
})

verifies('h2.body', 'a body that is too large is refused, whether the client says how large it is or not', async () => {
  const { open } = await start({ limits: { bodyBytes: 1_000 }, routes: [read] })
  const session = open()
  const post = (size: number, headers: OutgoingHttpHeaders) => ask(session, { ':path': '/read', ':method': 'POST', ...headers }, 'x'.repeat(size)) // prettier-ignore
  expect(JSON.parse((await post(1_000, {})).text)).toEqual({ bytes: 1_000 })
  expect((await post(1_001, {})).status).toBe(413)
  expect((await post(30_000, { 'content-length': 30_000 })).status).toBe(413)
})

verifies('h2.body', 'without a token the refusal comes before the body', async () => {
  const { port } = await start({ routes: [read], tokens, anonymous: false })
  const raw = await RawHttp2.open(port)
  const stream = raw.ask('/read', { method: 'POST', flags: END_HEADERS })
  await expect.poll(() => raw.has(TYPE.headers, stream)).toBe(true)
  await expect.poll(() => raw.has(TYPE.reset, stream)).toBe(true)
})

verifies('h2.request-time', 'a body that never ends is not waited for', async () => {
  const { open } = await start({ routes: [read], limits: { requestTimeoutMs: 100, headersTimeoutMs: 100 } })
  const request = open().request({ ':path': '/read', ':method': 'POST' })
  request.write('the beginning')
  const [headers] = (await once(request, 'response')) as [IncomingHttpHeaders]
  expect(headers[':status']).toBe(408)
  request.resume()
  await once(request, 'close')
})

verifies('h2.idle', 'a stranger who says nothing is disconnected, before and after the handshake', async () => {
  const { port, open } = await start({ limits: { headersTimeoutMs: 100 } })
  const silent = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false, ALPNProtocols: ['h2'] })
  silent.on('error', () => undefined).resume()
  await once(silent, 'close')
  const session = open()
  await once(session, 'goaway')
  await once(session, 'close')
})

verifies('h2.streams', 'a stranger has eight streams, and who shows a token a hundred', async () => {
  const { open } = await start({ routes: [get('/hello', async () => new Response('hello'))], tokens, anonymous: false })
  const session = open()
  await once(session, 'remoteSettings')
  expect(session.remoteSettings.maxConcurrentStreams).toBe(8)
  expect((await ask(session, { ':path': '/hello' })).status).toBe(401)
  expect(session.remoteSettings.maxConcurrentStreams).toBe(8)
  expect((await ask(session, { ':path': '/hello', ...BEARER })).status).toBe(200)
  await expect.poll(() => session.remoteSettings.maxConcurrentStreams).toBe(100)
})

verifies('h2.streams', 'a connection with more streams than it may have is closed', async () => {
  const { port } = await start({ routes: [read], tokens, anonymous: false })
  const raw = await RawHttp2.open(port)
  const streams = Array.from({ length: 12 }, () => raw.request('/health', { flags: END_HEADERS }))
  raw.send(...streams.map(({ frame }) => frame))
  await expect.poll(() => raw.isOpen).toBe(false)
  expect(raw.heard.filter(({ type }) => type === TYPE.headers).length).toBeLessThanOrEqual(8)
})

verifies('h2.evicted', 'the oldest stranger makes room for a new connection, and a caller with a token stays', async () => {
  const { open } = await start({
    routes: [get('/hello', async () => new Response('hello'))],
    tokens,
    anonymous: false,
    limits: { connections: 2 },
  })
  const known = open()
  expect((await ask(known, { ':path': '/hello', ...BEARER })).status).toBe(200)
  const stranger = open()
  expect((await ask(stranger, { ':path': '/health' })).status).toBe(200)
  const gone = once(stranger, 'close')
  const next = open()
  expect((await ask(next, { ':path': '/hello', ...BEARER })).status).toBe(200)
  await gone
  expect((await ask(known, { ':path': '/hello', ...BEARER })).status).toBe(200)
  // All of them are known now.
  const beyond = await ask(open(), { ':path': '/health' })
  expect([beyond.status, beyond.headers['retry-after']]).toEqual([503, '1'])
})

verifies('h2.back-pressure', 'an agent waits for a client that does not read', async () => {
  const { route, seen, stopped } = endless()
  const { open } = await start({ routes: [route], limits: { outboundBytes: 64 * 1024 } })
  const session = open()
  const request = session.request({ ':path': '/endless' })
  await once(request, 'response')
  let before = -1
  await expect.poll(() => before === (before = seen.bytes), { interval: 100 }).toBe(true)
  expect(seen.bytes).toBeLessThan(2 * 1024 * 1024)
  let read = 0
  for await (const chunk of request) if ((read += (chunk as Buffer).length) > before + 100_000) break
  expect(seen.bytes).toBeGreaterThan(before)
  session.destroy()
  await stopped
})

verifies('h2.unread', 'a stream that nobody reads is cut, and the others of its connection go on', async () => {
  const { route, stopped } = endless()
  const large = get('/large', async () => new Response('x'.repeat(300_000)))
  const { port } = await start({ routes: [route, large], limits: { stallMs: 200, outboundBytes: 64 * 1024 } })
  const raw = await RawHttp2.open(port)
  // Room on the connection, and none on the streams.
  raw.send({ type: TYPE.window, body: number(10_000_000) })
  const [one, other] = [raw.ask('/endless'), raw.ask('/large')]
  await stopped
  await expect.poll(() => raw.has(TYPE.reset, other)).toBe(true)
  const third = raw.ask('/health')
  await expect.poll(() => raw.bytesOf(third)).toBeGreaterThan(0)
  expect(raw.bytesOf(one)).toBeLessThan(70_000)
  expect(raw.isOpen).toBe(true)
})

verifies('h2.small-window', 'a window that opens byte by byte is none', async () => {
  const { route, stopped } = endless()
  const { port } = await start({ routes: [route], limits: { stallMs: 300, outboundBytes: 64 * 1024 } })
  const raw = await RawHttp2.open(port, setting(INITIAL_WINDOW, 1))
  const stream = raw.ask('/endless')
  const drip = setInterval(() => raw.send({ type: TYPE.window, stream, body: number(1) }), 10)
  onTestFinished(() => clearInterval(drip))
  await stopped
  expect(raw.bytesOf(stream)).toBeLessThan(1_000)
})

test('a reader that is slow but reads is kept', async () => {
  const { route, stopped } = endless()
  let isStopped = false
  void stopped.then(() => (isStopped = true))
  const { port } = await start({ routes: [route], limits: { stallMs: 300, outboundBytes: 1024 * 1024 } })
  const raw = await RawHttp2.open(port)
  const stream = raw.ask('/endless')
  const drip = setInterval(
    () => raw.send({ type: TYPE.window, stream, body: number(20_000) }, { type: TYPE.window, body: number(20_000) }),
    50,
  )
  onTestFinished(() => clearInterval(drip))
  await expect.poll(() => raw.bytesOf(stream)).toBeGreaterThan(600_000)
  expect(isStopped).toBe(false)
})

verifies('h2.unread-bytes', 'unread answers of all streams together count as memory', async () => {
  const large = get('/large', async () => new Response('x'.repeat(200_000)))
  const { port, gateway } = await start({ routes: [large], limits: { stallMs: 60_000 } })
  const raw = await RawHttp2.open(port, setting(INITIAL_WINDOW, 0))
  for (let count = 0; count < 6; count++) raw.ask('/large')
  await expect.poll(() => gateway.heldBytes).toBeGreaterThan(1_000_000)
  raw.socket.destroy()
  await expect.poll(() => gateway.heldBytes).toBe(0)
})

verifies('h2.goaway', 'a server that stops says so, and lets a stream end', async () => {
  let end!: () => void
  const ended = new Promise<void>((resolve) => (end = resolve))
  const route = get('/stream', async function* () {
    yield 'data: 1\n\n'
    await ended
    yield 'data: 2\n\n'
  })
  const { open, listening } = await start({ routes: [route] })
  const [session, idle] = [open(), open()]
  await Promise.all([once(session, 'remoteSettings'), once(idle, 'remoteSettings')])
  const request = session.request({ ':path': '/stream' })
  await once(request, 'response')
  const told = Promise.all([once(session, 'goaway'), once(idle, 'close')])
  listening.stop()
  await told
  let text = ''
  setImmediate(end)
  for await (const chunk of request.setEncoding('utf8')) text += String(chunk)
  expect(text).toBe('data: 1\n\ndata: 2\n\n')
  await Promise.all([once(session, 'close'), listening.close(5_000)])
})

test('a HEAD has no body, and an answer without a body no more than headers', async () => {
  const { open } = await start({ routes: [get('/large', async () => new Response('x'.repeat(100_000)))] })
  const session = open()
  const head = await ask(session, { ':path': '/large', ':method': 'HEAD' })
  expect([head.status, head.text]).toEqual([200, ''])
  expect((await ask(session, { ':path': '/large' })).text).toHaveLength(100_000)
  const preflight = { ':method': 'OPTIONS', origin: 'http://localhost:1', 'access-control-request-method': 'POST' }
  expect((await ask(session, { ':path': '/large', ...preflight })).status).toBe(204)
})

test('a client that waits for a sign before it sends its body gets it', async () => {
  const { open } = await start({ routes: [read] })
  const session = open()
  const request = session.request({ ':path': '/read', ':method': 'POST', expect: '100-continue' })
  await once(request, 'continue')
  request.end('hello')
  let text = ''
  for await (const chunk of request.setEncoding('utf8')) text += String(chunk)
  expect(JSON.parse(text)).toEqual({ bytes: 5 })
  expect((await ask(session, { ':path': '/health', expect: 'wonders' })).status).toBe(417)
})

test('the body of a web stream comes whole, at the pace of its reader', async () => {
  let asked = 0
  const chunks = 200
  const body = () =>
    new ReadableStream<Uint8Array>(
      {
        pull(controller) {
          controller.enqueue(new Uint8Array(15_000))
          if (++asked === chunks) controller.close()
        },
      },
      { highWaterMark: 0 },
    )
  const { open } = await start({ routes: [get('/web', async () => new Response(body()))] })
  const session = open()
  const request = session.request({ ':path': '/web' })
  await once(request, 'response')
  let before = -1
  await expect.poll(() => before === (before = asked), { interval: 100 }).toBe(true)
  expect(asked).toBeLessThan(chunks / 2)
  let bytes = 0
  for await (const chunk of request) bytes += (chunk as Buffer).length
  expect(bytes).toBe(chunks * 15_000)
})
