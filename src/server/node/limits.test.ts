import { once } from 'node:events'
import { connect as netConnect } from 'node:net'
import type { Socket as NetSocket } from 'node:net'
import { expect, test } from 'vitest'
import type { WebSocket } from 'ws'
import { refusedUpgrade, testServer } from '../../../test/support/test-server.ts'
import type { Route } from '../../core/ports/transport.ts'

const read: Route = {
  method: 'POST',
  path: '/read',
  access: 'request',
  handle: async (request) => Response.json({ bytes: (await request.text()).length }),
}
const echo: Route = {
  method: 'WS',
  path: '/echo',
  access: 'request',
  async handle(socket) {
    for await (const message of socket) await socket.send([String(message)])
  },
}

/** The whole answer to bytes on a bare connection. */
async function raw(port: number, bytes: string | Buffer): Promise<{ status: number; body: { error: { code: string } } }> {
  const client = netConnect(port, '127.0.0.1')
  client.write(bytes)
  let text = ''
  for await (const chunk of client) text += String(chunk)
  const [head = '', body = ''] = text.split('\r\n\r\n')
  return { status: Number(head.split(' ')[1]), body: JSON.parse(body) as { error: { code: string } } }
}

const message = async (client: WebSocket) => String((await once(client, 'message'))[0])

test('a body that is too large is refused by its length, before it is read', async () => {
  const { url } = await testServer({ routes: [read], limits: { bodyBytes: 1000 } })
  const post = (body: string | ReadableStream) => fetch(`${url}/read`, { method: 'POST', body, duplex: 'half' } as RequestInit)
  expect(await (await post('x'.repeat(1000))).json()).toEqual({ bytes: 1000 })
  const refused = await post('x'.repeat(10 * 1024 * 1024))
  expect([refused.status, await refused.json()]).toMatchObject([413, { error: { code: 'too_large', details: { limit: 1000 } } }])

  const chunked = (count: number) =>
    new ReadableStream({
      start(controller) {
        for (let i = 0; i < count; i++) controller.enqueue(new TextEncoder().encode('x'.repeat(100)))
        controller.close()
      },
    })
  expect(await (await post(chunked(10))).json()).toEqual({ bytes: 1000 })
  const counted = await post(chunked(11))
  expect([counted.status, await counted.json()]).toMatchObject([413, { error: { code: 'too_large' } }])
})

test('a route may take more than others: as a body, and as a message', async () => {
  const larger = { ...read, path: '/larger/:id', bodyBytes: 3000 } as Route
  const louder = { ...echo, path: '/louder', messageBytes: 3000 } as Route
  const { url, connect } = await testServer({ routes: [read, larger, echo, louder], limits: { bodyBytes: 1000, messageBytes: 1000 } })
  const post = async (path: string, size: number) => (await fetch(url + path, { method: 'POST', body: 'x'.repeat(size) })).status
  expect([await post('/larger/1', 3000), await post('/larger/1', 3001), await post('/read', 1001)]).toEqual([200, 413, 413])
  for (const [path, size] of [
    ['/louder', 3000],
    ['/echo', 1000],
  ] as const) {
    const client = connect(path)
    await once(client, 'open')
    client.send('x'.repeat(size))
    expect((await message(client)).length).toBe(size)
    client.send('x'.repeat(size + 1))
    expect((await once(client, 'close'))[0]).toBe(1009)
  }
})

test('a URL or headers that are too long are refused', async () => {
  const { url, port } = await testServer({ routes: [read], limits: { urlBytes: 200, headerBytes: 4096, headerCount: 20 } })
  const long = await fetch(`${url}/${'x'.repeat(300)}`)
  expect([long.status, await long.json()]).toMatchObject([414, { error: { code: 'too_large' } }])
  const request = (headers: string) => `GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n${headers}\r\n`
  const refused = { status: 431, body: { error: { code: 'too_large' } } }
  expect(await raw(port, request(`x-long: ${'x'.repeat(5000)}\r\n`))).toMatchObject(refused)
  expect(await raw(port, request('x-many: 1\r\n'.repeat(20)))).toMatchObject(refused)
  expect(await raw(port, request('x-many: 1\r\n'.repeat(18)))).toMatchObject({ status: 200 })
})

test('what is not HTTP, and what does not come, is refused', async () => {
  const { port } = await testServer({ limits: { headersTimeoutMs: 60, requestTimeoutMs: 120 } })
  expect(await raw(port, 'nonsense\r\n\r\n')).toMatchObject({ status: 400, body: { error: { code: 'invalid_request' } } })
  expect(await raw(port, 'GET / HTTP/1.1\r\nhost: loc')).toMatchObject({ status: 408, body: { error: { code: 'timeout' } } })
  const upgrade = 'GET /echo HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\n'
  expect(await raw(port, `${upgrade}upgrade: h2c\r\n\r\n`)).toMatchObject({ status: 400 })
})

test('a body that does not come, or cannot be read, is refused in words', async () => {
  const { port } = await testServer({ routes: [read], limits: { headersTimeoutMs: 60, requestTimeoutMs: 120 } })
  const post = 'POST /read HTTP/1.1\r\nhost: localhost\r\n'
  expect(await raw(port, `${post}content-length: 10\r\n\r\nhalf`)).toMatchObject({ status: 408, body: { error: { code: 'timeout' } } })
  const nonsense = `${post}transfer-encoding: chunked\r\n\r\nnonsense\r\n`
  expect(await raw(port, nonsense)).toMatchObject({ status: 400, body: { error: { code: 'invalid_request' } } })
})

test('a handshake that is none is refused as JSON', async () => {
  const { port } = await testServer({ routes: [echo] })
  const upgrade = 'GET /echo HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\r\n'
  expect(await raw(port, upgrade)).toMatchObject({ status: 400, body: { error: { code: 'invalid_request' } } })
})

test('requests of one principal are limited, those of others are not', async () => {
  let now = 1000
  const tokens = { alice: 'a-0123456789abcdef', bob: 'b-0123456789abcdef' }
  const { url } = await testServer({ routes: [read], tokens, now: () => now, limits: { requestsPerSecond: 1, requestBurst: 2 } })
  const post = (token: string) => fetch(`${url}/read`, { method: 'POST', headers: { authorization: `Bearer ${token}` } })
  expect([(await post('a-0123456789abcdef')).status, (await post('a-0123456789abcdef')).status]).toEqual([200, 200])
  const refused = await post('a-0123456789abcdef')
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '1'])
  expect(await refused.json()).toMatchObject({ error: { code: 'rate_limited', details: { retry_after: 1 } } })
  expect((await post('b-0123456789abcdef')).status).toBe(200)
  now += 1000
  expect([(await post('a-0123456789abcdef')).status, (await post('a-0123456789abcdef')).status]).toEqual([200, 429])
})

test('connections beyond the limit are told to come back', async () => {
  const { url, port, connect } = await testServer({ routes: [echo], limits: { connections: 2 } })
  const sockets = [connect('/echo'), connect('/echo')]
  await Promise.all(sockets.map((socket) => once(socket, 'open')))
  const busy = { status: 503, body: { error: { code: 'overloaded' } } }
  expect(await raw(port, 'GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n')).toMatchObject(busy)
  expect(await refusedUpgrade(connect('/echo'))).toMatchObject({ ...busy, headers: { 'retry-after': '1' } })
  sockets[0]?.close()
  await once(sockets[0] as WebSocket, 'close')
  expect((await fetch(`${url}/health`)).status).toBe(200)
})

test('sockets of one principal are limited', async () => {
  const { connect } = await testServer({ routes: [echo], tokens: { alice: 'a-0123456789abcdef' }, limits: { socketsPerPrincipal: 1 } })
  const first = connect('/echo')
  await once(first, 'open')
  expect(await refusedUpgrade(connect('/echo'))).toMatchObject({ status: 429, body: { error: { code: 'rate_limited' } } })
  const other = connect('/echo', { headers: { authorization: 'Bearer a-0123456789abcdef' } })
  await once(other, 'open')
  first.close()
  await once(first, 'close')
  await once(connect('/echo'), 'open')
})

test.each([
  ['a message that is too large', 1009, (client: WebSocket) => client.send('x'.repeat(1001))],
  ['text that is not UTF-8', 1007, (client: WebSocket) => client.send(Buffer.from([0xff, 0xfe]), { binary: false })],
  ['a frame that is not masked', 1002, (client: WebSocket) => bare(client).write(Buffer.from([0x81, 0x01, 0x61]))],
])('%s closes its socket with %s and no other', async (_, expected, offend) => {
  const { connect } = await testServer({ routes: [echo], limits: { messageBytes: 1000 } })
  const [client, other] = [connect('/echo'), connect('/echo')]
  await Promise.all([once(client, 'open'), once(other, 'open')])
  offend(client)
  const [code] = await once(client, 'close')
  expect(code).toBe(expected)
  other.send('x'.repeat(1000))
  expect(await message(other)).toHaveLength(1000)
})

/** The connection under a client. */
function bare(client: WebSocket): NetSocket {
  return (client as unknown as { _socket: NetSocket })._socket
}

test('messages beyond the rate are read later, and none is lost', async () => {
  const times: number[] = []
  const { connect } = await testServer({
    limits: { messagesPerSecond: 100, messageBurst: 20 },
    routes: [
      {
        method: 'WS',
        path: '/count',
        access: 'request',
        async handle(socket) {
          for await (const _ of socket) if (times.push(Date.now()) === 60) break
        },
      },
    ],
  })
  const start = Date.now()
  const client = connect('/count')
  await once(client, 'open')
  // So large that one read of the server brings only a few: those it has read, it has read.
  for (let i = 0; i < 60; i++) client.send('x'.repeat(30_000))
  const [code] = await once(client, 'close')
  expect([code, times.length]).toEqual([1000, 60])
  // 20 at once and 100 a second: 60 take 400 ms, less what one read may bring too much.
  expect((times.at(-1) ?? 0) - start).toBeGreaterThan(300)
})

test('a socket whose reader takes nothing for too long is closed with 1013', async () => {
  let stopped!: () => void
  const stop = new Promise<void>((resolve) => (stopped = resolve))
  const { connect } = await testServer({
    limits: { stallMs: 200, outboundBytes: 64 * 1024 },
    routes: [
      {
        method: 'WS',
        path: '/flood',
        access: 'request',
        async handle(socket, { signal }) {
          while (!signal.aborted) await socket.send(['x'.repeat(10_000)])
          stopped()
        },
      },
    ],
  })
  const client = connect('/flood')
  await once(client, 'open')
  client.pause()
  await stop
  client.resume()
  const [code] = await once(client, 'close')
  expect(code).toBe(1013)
})

test('a socket that reads again long after it was closed for standing still finds the code', async () => {
  let stopped!: () => void
  const stop = new Promise<void>((resolve) => (stopped = resolve))
  const { connect } = await testServer({
    limits: { stallMs: 200, outboundBytes: 64 * 1024 },
    closeTimeoutMs: 50,
    routes: [
      {
        method: 'WS',
        path: '/flood',
        access: 'request',
        async handle(socket, { signal }) {
          while (!signal.aborted) await socket.send(['x'.repeat(10_000)])
          stopped()
        },
      },
    ],
  })
  const client = connect('/flood')
  await once(client, 'open')
  client.pause()
  await stop
  // Others would be cut by now: they have 50 ms to answer.
  await new Promise((resolve) => setTimeout(resolve, 500))
  client.resume()
  const [code, reason] = await once(client, 'close')
  expect([code, String(reason)]).toEqual([1013, 'Reading too slowly'])
})

test('a reader that is slow but reads is kept', async () => {
  const stallMs = 300
  let finished!: () => void
  const finish = new Promise<void>((resolve) => (finished = resolve))
  const { connect } = await testServer({
    limits: { stallMs, outboundBytes: 64 * 1024 },
    routes: [
      {
        method: 'WS',
        path: '/flood',
        access: 'request',
        async handle(socket) {
          for (let i = 0; i < 2000; i++) await socket.send(['x'.repeat(10_000)])
          // A close waits for slow readers too, but not for ever.
          await socket[Symbol.asyncIterator]().next()
          finished()
        },
      },
    ],
  })
  const client = connect('/flood')
  let count = 0
  client.on('message', () => {
    if (++count === 2000) client.send('all of it')
    if (count % 100 !== 0) return
    client.pause()
    setTimeout(() => client.resume(), stallMs / 6)
  })
  const [, [code]] = await Promise.all([finish, once(client, 'close')])
  expect([code, count]).toEqual([1000, 2000])
})

test('of pings that come at once only the last is answered', async () => {
  const { connect } = await testServer({ routes: [echo] })
  const client = connect('/echo')
  const heard: string[] = []
  client.on('pong', (data) => heard.push(String(data)))
  await once(client, 'open')
  bare(client).cork()
  for (let n = 1; n <= 1_000; n++) client.ping(`${n}`)
  bare(client).uncork()
  await expect.poll(() => heard.at(-1)).toBe('1000')
  // They may come in a few pieces.
  expect(heard.length).toBeLessThan(100)
  client.close()
})

test('a peer that sends pings and reads nothing is not read for ever', async () => {
  const { url, connect } = await testServer({ routes: [echo], limits: { messagesPerSecond: 10, messageBurst: 20 } })
  const client = connect('/echo')
  await once(client, 'open')
  client.send('hello')
  client.ping('are you there?')
  expect(String((await once(client, 'pong'))[0])).toBe('are you there?')
  client.pause()
  // More than two kernels hold between them: masked, with a key of zeros.
  const pings = Buffer.concat(
    Array.from({ length: 1000 }, () => Buffer.concat([Buffer.from([0x89, 0x80 | 120, 0, 0, 0, 0]), Buffer.alloc(120)])),
  )
  for (let i = 0; i < 256; i++) bare(client).write(pings)
  await new Promise((resolve) => setTimeout(resolve, 200))
  expect((await fetch(`${url}/health`)).status).toBe(200)
  expect(bare(client).writableLength).toBeGreaterThan(0)
  client.terminate()
})

test('a peer that is gone without a word is found out, one that is only silent is kept', async () => {
  let over!: () => void
  const end = new Promise<void>((resolve) => (over = resolve))
  const { port, connect } = await testServer({
    limits: { pingIntervalMs: 50, pongTimeoutMs: 50 },
    routes: [
      echo,
      {
        method: 'WS',
        path: '/dead',
        access: 'request',
        async handle(socket) {
          for await (const _ of socket) void _
          over()
        },
      },
    ],
  })
  const silent = connect('/echo')
  let pings = 0
  silent.on('ping', () => pings++)
  await once(silent, 'open')
  // Never answers a ping: what a half-open connection looks like from here.
  const dead = netConnect(port, '127.0.0.1')
  const key = 'dGhlIHNhbXBsZSBub25jZQ=='
  dead.write(
    `GET /dead HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: ${key}\r\n\r\n`,
  )
  dead.on('error', () => {})
  await end
  while (pings < 3) await once(silent, 'ping')
  silent.send('still here')
  expect(await message(silent)).toBe('still here')
  dead.destroy()
})

test('2,000 connects at once are all served', async () => {
  const { connect, metrics } = await testServer({ routes: [echo] })
  const clients = Array.from({ length: 2000 }, () => connect('/echo'))
  const answers = await Promise.all(
    clients.map(async (client, i) => {
      await once(client, 'open')
      client.send(String(i))
      return message(client)
    }),
  )
  expect(answers).toEqual(answers.map((_, i) => String(i)))
  expect(metrics.openSockets).toBe(2000)
  for (const client of clients) client.terminate()
})
