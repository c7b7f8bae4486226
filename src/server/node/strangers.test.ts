import { once } from 'node:events'
import { connect as netConnect, type Socket as NetSocket } from 'node:net'
import { expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { admitted } from '../../core/basics/principal.ts'
import { demo } from '../../agents/demo/index.ts'
import { startServer } from '../../../test/support/server.ts'
import { testServer } from '../../../test/support/test-server.ts'
import type { Route } from '../../core/ports/transport.ts'

const secret = 'a-secret-of-alice-0123'
const tokens = { alice: secret }
const KIB = 1024

const hello = (token: string | undefined, more: object = {}) => JSON.stringify({ type: 'session.create', token, ...more })

async function opened(url: string, path = '/uamp', headers: Record<string, string> = {}) {
  const client = new WebSocket(`${url.replace('http', 'ws')}${path}`, { headers, perMessageDeflate: true })
  const heard: Record<string, unknown>[] = []
  client.on('message', (data) => heard.push(JSON.parse(String(data)) as Record<string, unknown>))
  client.on('error', () => undefined)
  const closed = once(client, 'close').then(([code, reason]) => [code as number, String(reason)] as const)
  await once(client, 'open')
  return { client, heard, closed }
}

/** A WebSocket by hand: what a client library would not send. */
async function bare(port: number, path = '/uamp', headers = ''): Promise<NetSocket> {
  const socket = netConnect(port, '127.0.0.1')
  const key = 'sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ=='
  socket.write(`GET ${path} HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\n${key}\r\n${headers}\r\n`)
  socket.on('error', () => undefined)
  await once(socket, 'data')
  return socket
}

/** The code and the reason of the close frame that ends it. */
async function closeOf(socket: NetSocket): Promise<readonly [number, string]> {
  const chunks: Buffer[] = []
  for await (const chunk of socket) chunks.push(chunk as Buffer)
  const bytes = Buffer.concat(chunks)
  const at = bytes.lastIndexOf(0x88)
  return [bytes.readUInt16BE(at + 2), bytes.subarray(at + 4).toString()]
}

/** The header of a masked frame, with a key of zeros. */
function frame(first: number, length: number): Buffer {
  const header = Buffer.alloc(14)
  header[0] = first
  header[1] = 0x80 | 127
  header.writeBigUInt64BE(BigInt(length), 2)
  return header
}

const paths = ['/uamp', '/ws', '/agents/demo/uamp', '/agents/demo/ws']

test.each(paths)('at %s a large message is refused before the token, and taken after it', async (path) => {
  const { url } = await startServer(demo(), { tokens })
  const stranger = await opened(url, path)
  stranger.client.send(hello(secret, { session: { instructions: 'x'.repeat(16 * KIB) } }))
  expect(await stranger.closed).toEqual([4401, 'A message before the token may have at most 16384 bytes'])
  const known = await opened(url, path)
  // Sent at once, without waiting for the answer to the token: nothing of it may be lost.
  known.client.send(hello(secret))
  known.client.send(JSON.stringify({ type: 'input.text', text: 'y'.repeat(300 * KIB) }))
  known.client.send(JSON.stringify({ type: 'response.create' }))
  await expect.poll(() => known.heard.some(({ type }) => type === 'response.done')).toBe(true)
  const byHeader = await opened(url, path, { authorization: `Bearer ${secret}` })
  byHeader.client.send(hello(undefined, { session: { instructions: 'x'.repeat(50 * KIB) } }))
  await expect.poll(() => byHeader.heard[0]?.['type']).toBe('session.created')
})

test('a stranger has three messages, and none of them is a line in the log', async () => {
  const { url, logged } = await startServer(demo(), { tokens })
  const unknown = JSON.stringify({ type: 'what.is.this' })
  const { client, closed, heard } = await opened(url)
  for (let i = 0; i < 1000; i++) client.send(unknown)
  expect(await closed).toEqual([4401, 'No valid token in three messages'])
  expect(heard).toEqual([])
  const pinging = await opened(url)
  for (let i = 0; i < 4; i++) pinging.client.send(JSON.stringify({ type: 'ping' }))
  expect(await pinging.closed).toEqual([4401, 'No valid token in three messages'])
  expect(pinging.heard.map(({ type }) => type)).toEqual(['pong', 'pong', 'pong'])
  const last = await opened(url)
  for (const text of [unknown, '{', hello(secret)]) last.client.send(text)
  await expect.poll(() => last.heard.some(({ type }) => type === 'session.created')).toBe(true)
  expect(logged).toEqual([])
})

test('a known caller fills no log either', async () => {
  const { url, logged } = await startServer(demo(), { tokens })
  const { client, heard } = await opened(url, '/uamp', { authorization: `Bearer ${secret}` })
  for (let i = 0; i < 100; i++) client.send(JSON.stringify({ type: 'what.is.this' }))
  for (let i = 0; i < 100; i++) client.send(JSON.stringify({ type: `what.is.${i}` }))
  client.send(JSON.stringify({ type: 'ping' }))
  await expect.poll(() => heard.length).toBe(1)
  // UAMP events §14.3: what is not known is logged. Once for each type, and not for ever.
  expect(logged.map(({ message }) => message)).toEqual(Array.from({ length: 16 }, () => 'Ignored an event of unknown type'))
})

test.each([
  ['a frame that never ends', frame(0x81, 4 * KIB * KIB)],
  ['a message in parts that never end', frame(0x01, 4 * KIB * KIB)],
])('%s is cut when it has become too large, and not when it has come', async (_, header) => {
  const { port, url } = await startServer(demo(), { tokens })
  const sockets = await Promise.all(Array.from({ length: 40 }, () => bare(port)))
  const allButOneByte = Buffer.alloc(4 * KIB * KIB - 1, 0x20)
  const ends = sockets.map(closeOf)
  for (const socket of sockets) {
    socket.write(header)
    socket.write(allButOneByte)
  }
  for (const end of await Promise.all(ends)) expect(end).toEqual([4401, 'A message before the token may have at most 16384 bytes'])
  expect((await fetch(`${url}/health`)).status).toBe(200)
})

test.each([
  ['a frame', 0x81, 17 * KIB],
  ['a part of a message', 0x01, 60_000],
])('%s that is too large is refused when it begins, though it would fit into what three messages may have', async (_, first, length) => {
  const { port } = await startServer(demo(), { tokens })
  const socket = await bare(port)
  const end = closeOf(socket)
  // All but a byte: it never ends.
  socket.write(Buffer.concat([frame(first, length), Buffer.alloc(length - 1, 0x20)]))
  expect(await end).toEqual([4401, 'A message before the token may have at most 16384 bytes'])
})

test('parts of a message count together', async () => {
  const { port } = await startServer(demo(), { tokens })
  const socket = await bare(port)
  const end = closeOf(socket)
  const part = Buffer.alloc(6 * KIB, 0x20)
  for (const first of [0x01, 0x00, 0x00]) socket.write(Buffer.concat([frame(first, part.length), part]))
  expect(await end).toEqual([4401, 'A message before the token may have at most 16384 bytes'])
})

test('three messages of the size that one may have are all read', async () => {
  const { url } = await startServer(demo(), { tokens })
  const { client, heard } = await opened(url)
  const large = JSON.stringify({ type: 'ping', event_id: 'e', pad: 'x'.repeat(16_300) })
  for (const text of [large, large, hello(secret, { pad: 'x'.repeat(16_000) })]) client.send(text)
  await expect.poll(() => heard.map(({ type }) => type)).toContain('session.created')
})

test('a compressed frame is none: nobody is offered compression', async () => {
  const { port, url } = await startServer(demo(), { tokens })
  const { client } = await opened(url)
  expect(client.extensions).toBe('')
  const socket = await bare(port, '/uamp', 'sec-websocket-extensions: permessage-deflate\r\n')
  const end = closeOf(socket)
  socket.write(Buffer.concat([frame(0x81 | 0x40, 100), Buffer.alloc(100)]))
  expect((await end)[0]).toBe(1002)
})

test('a stranger that says nothing is closed after a while', async () => {
  const { url } = await startServer(demo(), { tokens, limits: { authenticateMs: 100 } })
  const { closed } = await opened(url)
  expect(await closed).toEqual([4401, 'No valid token in time'])
})

test('a stranger that does not answer the close is cut soon', async () => {
  const { port } = await startServer(demo(), { tokens, limits: { authenticateMs: 50 } })
  const socket = await bare(port)
  // It neither closes nor answers, and yet its connection ends.
  await once(socket.resume(), 'end')
})

test('when there are too many strangers the oldest goes, and whoever has a token gets in', async () => {
  const { url } = await startServer(demo(), { tokens, limits: { strangers: 5 } })
  const strangers = []
  for (let i = 0; i < 5; i++) strangers.push(await opened(url))
  const known = await opened(url)
  expect(await strangers[0]?.closed).toEqual([1013, 'Too many connections wait for a token'])
  known.client.send(hello(secret))
  await expect.poll(() => known.heard[0]?.['type']).toBe('session.created')
  // It waits no longer, and so leaves room for another.
  await opened(url)
  const [, second] = strangers
  expect(second?.client.readyState).toBe(WebSocket.OPEN)
})

test('an address has a share of its own of what strangers may take', async () => {
  const limits = { strangersPerAddress: 2 }
  const { connect } = await testServer({
    limits,
    tokens,
    anonymous: false,
    trusts: (address) => address === '127.0.0.1',
    routes: [
      {
        method: 'WS',
        path: '/late',
        access: 'first-message',
        async handle(socket) {
          for await (const _ of socket) void _
        },
      },
    ],
  })
  const from = async (address: string) => {
    const client = connect('/late', { headers: { 'x-forwarded-for': address } })
    await once(client, 'open')
    return client
  }
  const bystander = await from('198.51.100.9')
  const [first, second] = [await from('2001:db8::1'), await from('2001:db8::2')]
  const closed = once(first, 'close')
  await from('2001:db8::3')
  const [code, reason] = await closed
  expect([code, String(reason)]).toEqual([1013, 'Too many connections of this address wait for a token'])
  expect([bystander.readyState, second.readyState]).toEqual([WebSocket.OPEN, WebSocket.OPEN])
})

const late: Route = {
  method: 'WS',
  path: '/late',
  access: 'first-message',
  async handle(socket, { access }) {
    for await (const token of socket) await socket.send([admitted(await access.authenticate({ token: String(token) }))?.id ?? 'nobody'])
  },
}
const me: Route = { method: 'POST', path: '/me', access: 'request', handle: async (_, { principal }) => Response.json(principal.id) }

test('connections that have shown nothing make room for others, the oldest first', async () => {
  const { url, port, connect } = await testServer({ routes: [late, me], tokens, anonymous: false, limits: { connections: 4 } })
  const known = connect('/late')
  await once(known, 'open')
  known.send(secret)
  await once(known, 'message')
  const silent = netConnect(port, '127.0.0.1')
  const silentGone = once(silent.resume(), 'close')
  await once(silent, 'connect')
  const slow = netConnect(port, '127.0.0.1')
  slow.write('POST /me HTTP/1.1\r\nhost: loc')
  const slowGone = once(slow.resume(), 'close')
  await once(slow, 'connect')
  const waiting = connect('/late')
  const waitingGone = once(waiting, 'close')
  await once(waiting, 'open')
  const post = () =>
    fetch(`${url}/me`, { method: 'POST', headers: { authorization: `Bearer ${secret}`, connection: 'close' } }).then(({ status }) => status)
  expect(await post()).toBe(200)
  await silentGone
  for (let i = 0; i < 3; i++) await once(connect('/late'), 'open')
  await slowGone
  const [code, reason] = await Promise.race([waitingGone, once(known, 'close')])
  expect([code, String(reason)]).toEqual([1013, 'Too many connections'])
  known.send(secret)
  expect(String((await once(known, 'message'))[0])).toBe('alice')
})

test.each([
  ['content-length: 4000000', ''],
  ['transfer-encoding: chunked', '10000\r\n'],
])('a request without a token is answered before its body comes, and its connection ends (%s)', async (header, begin) => {
  const { port, logged } = await testServer({ routes: [me], tokens, anonymous: false })
  const client = netConnect(port, '127.0.0.1')
  client.write(`POST /me HTTP/1.1\r\nhost: localhost\r\n${header}\r\n\r\n${begin}`)
  let text = ''
  for await (const chunk of client) text += String(chunk)
  expect(text).toMatch(/^HTTP\/1\.1 401 /)
  expect(logged).toEqual([])
})

test('requests that are piled up behind an answer have a bound', async () => {
  let began = 0
  const slow: Route = {
    method: 'GET',
    path: '/slow',
    access: 'request',
    handle: (_, { signal }) => {
      began++
      return new Promise((resolve) => signal.addEventListener('abort', () => resolve(new Response(null))))
    },
  }
  const { port, url } = await testServer({ routes: [slow] })
  const client = netConnect(port, '127.0.0.1')
  client.on('error', () => undefined)
  const gone = new Promise((resolve) => client.resume().on('close', resolve))
  client.write('GET /slow HTTP/1.1\r\nhost: localhost\r\n\r\n'.repeat(5000))
  await gone
  expect(began).toBeLessThan(200)
  expect((await fetch(`${url}/health`)).status).toBe(200)
})
