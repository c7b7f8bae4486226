/** WebSockets over HTTP/2 (RFC 8441). */
import { once } from 'node:events'
import { connect as connectHttp2, type ClientHttp2Session } from 'node:http2'
import { expect, onTestFinished, test } from 'vitest'
import type { KnownCall, Route, Socket, SocketRoute } from '../../src/core/ports/transport.ts'
import { Authority } from '../support/certificates.ts'
import { webSocketOver } from '../support/over-http2.ts'
import { testServer, type TestServerOptions } from '../support/test-server.ts'
import { verifies } from '../support/verifies.ts'

const authority = new Authority()
const tls = authority.issue()
const tokens = { alice: 'wonderland-7b1f9c04' }

const echo: SocketRoute = {
  method: 'WS',
  path: '/echo',
  access: 'request',
  subprotocols: ['echo'],
  async handle(socket) {
    for await (const message of socket) await socket.send([message])
  },
}
const first: Route = { ...echo, path: '/first', access: 'first-message' }

async function start(options: TestServerOptions = {}) {
  const server = await testServer({ tls, routes: [echo, first], ...options })
  const session: ClientHttp2Session = connectHttp2(server.url, { ca: authority.pem })
  session.on('error', () => undefined)
  onTestFinished(() => session.destroy())
  return { ...server, session }
}

async function opened(session: ClientHttp2Session, path: string, headers = {}) {
  const socket = webSocketOver(session, path, headers)
  await once(socket, 'open')
  return socket
}

/** The status of an extended CONNECT that is refused. */
async function refused(session: ClientHttp2Session, headers: Record<string, string>): Promise<number> {
  if (!session.remoteSettings?.enableConnectProtocol) await once(session, 'remoteSettings')
  const request = session.request({ ':method': 'CONNECT', ':protocol': 'websocket', 'sec-websocket-version': '13', ...headers })
  request.on('error', () => undefined)
  const [answer] = (await once(request, 'response')) as [{ ':status': number }]
  request.destroy()
  return answer[':status']
}

verifies(['h2.websocket-setting', 'h2.websocket'], 'several WebSockets and requests share a connection', async () => {
  const { session } = await start()
  const [one, other] = await Promise.all([opened(session, '/echo'), opened(session, '/echo', { 'sec-websocket-protocol': 'none, echo' })])
  expect(session.remoteSettings.enableConnectProtocol).toBe(true)
  one.send('to one')
  other.send(Buffer.from('to the other'))
  expect([String((await once(one, 'message'))[0]), String((await once(other, 'message'))[0])]).toEqual(['to one', 'to the other'])
  one.send('x'.repeat(1_000_000))
  expect(((await once(one, 'message'))[0] as Buffer).length).toBe(1_000_000)
  one.close(4000, 'enough')
  const [code] = (await once(one, 'close')) as [number]
  expect(code).toBe(4000)
  other.send('still here')
  expect(String((await once(other, 'message'))[0])).toBe('still here')
})

verifies('h2.websocket', 'what would refuse an upgrade refuses a CONNECT', async () => {
  const { session } = await start({ tokens, anonymous: false })
  expect(await refused(session, { ':path': '/echo' })).toBe(401)
  expect(await refused(session, { ':path': '/nowhere' })).toBe(404)
  expect(await refused(session, { ':path': '/echo', ':protocol': 'connect-udp' })).toBe(400)
  expect(await refused(session, { ':path': '/echo', 'sec-websocket-version': '8' })).toBe(400)
  expect(await refused(session, { ':path': '/echo', origin: 'https://evil.example', authorization: `Bearer ${tokens.alice}` })).toBe(403)
  await opened(session, '/echo', { authorization: `Bearer ${tokens.alice}` })
})

test('a message that is too large closes the socket, and not the connection', async () => {
  const { session } = await start({ limits: { messageBytes: 1_000 } })
  const [one, other] = await Promise.all([opened(session, '/echo'), opened(session, '/echo')])
  one.send('x'.repeat(1_001))
  expect((await once(one, 'close'))[0]).toBe(1009)
  other.send('hello')
  expect(String((await once(other, 'message'))[0])).toBe('hello')
})

test('a socket that shows no token in time is closed with 4401', async () => {
  const { session } = await start({ tokens, anonymous: false, limits: { authenticateMs: 50 } })
  const socket = await opened(session, '/first')
  expect((await once(socket, 'close'))[0]).toBe(4401)
})

test('a peer that has vanished is found by pings', async () => {
  const { session, metrics } = await start({ limits: { pingIntervalMs: 50, pongTimeoutMs: 50 } })
  const socket = await opened(session, '/echo')
  expect(metrics.openSockets).toBe(1)
  ;(socket as unknown as { _socket: { pause(): void } })._socket.pause()
  await expect.poll(() => metrics.openSockets).toBe(0)
})

test('a socket that reads nothing is closed after the same time as over HTTP/1.1', async () => {
  let isStopped = false
  const endless: SocketRoute = {
    ...echo,
    path: '/endless',
    async handle(socket: Socket, { signal }: KnownCall) {
      try {
        while (!signal.aborted) await socket.send(['x'.repeat(10_000)])
      } finally {
        isStopped = true
      }
    },
  }
  const { session, metrics } = await start({ routes: [endless], limits: { stallMs: 200, outboundBytes: 64 * 1024 } })
  const socket = await opened(session, '/endless')
  ;(socket as unknown as { _socket: { pause(): void } })._socket.pause()
  await expect.poll(() => isStopped).toBe(true)
  await expect.poll(() => metrics.openSockets).toBe(0)
})

test('the server closes sockets when it stops', async () => {
  const { session, closeConnections } = await start()
  const socket = await opened(session, '/echo')
  const closed = once(socket, 'close')
  await closeConnections(1_000)
  expect((await closed)[0]).toBe(1001)
})
