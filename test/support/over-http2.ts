import { connect as connectHttp2, type ClientHttp2Session, type OutgoingHttpHeaders } from 'node:http2'
import { afterAll, beforeAll, expect } from 'vitest'
import { Agent, fetch as fetchOf, type RequestInit } from 'undici'
import { WebSocket } from 'ws'
import type { Authority } from './certificates.ts'
import { dial, plainWebSocket } from './dial.ts'

type ClientSocket = WebSocket & { _isServer: boolean; setSocket(socket: object, head: Buffer, options: object): void }

type ClientSocketClass = new (address: null, protocols: undefined, options: object) => ClientSocket

/** A WebSocket of `ws` on a stream of Node's HTTP/2 client (RFC 8441), which the library has no way to open. */
export function webSocketOver(session: ClientHttp2Session, path: string, headers: OutgoingHttpHeaders = {}): WebSocket {
  const socket = new (WebSocket as unknown as ClientSocketClass)(null, undefined, { closeTimeout: 10_000, autoPong: true })
  socket._isServer = false
  const open = (): void => {
    const stream = session.request({
      ...headers,
      ':method': 'CONNECT',
      ':protocol': 'websocket',
      ':path': path,
      'sec-websocket-version': '13',
    })
    stream.on('error', (error) => socket.emit('error', error))
    stream.once('response', (answer) => {
      if (answer[':status'] === 200) socket.setSocket(stream, Buffer.alloc(0), { maxPayload: 0, allowSynchronousEvents: true })
      else socket.emit('error', Object.assign(new Error(`refused with ${answer[':status']}`), { headers: answer }))
    })
  }
  // Only a server that has said so takes it (§3).
  if (session.remoteSettings?.enableConnectProtocol) open()
  else session.once('remoteSettings', open)
  return socket
}

/** From now on the tests of this file start servers with a certificate, and call them over HTTP/2, WebSockets too. */
export function everythingOverHttp2(authority: Authority): void {
  const globals = globalThis as { fetch: unknown }
  const plain = globals.fetch
  const dispatcher = new Agent({ allowH2: true, connect: { ca: authority.pem } })
  const sessions = new Map<string, ClientHttp2Session>()
  const sessionTo = (origin: string): ClientHttp2Session => {
    const known = sessions.get(origin)
    if (known && !known.closed && !known.destroyed) return known
    const session = connectHttp2(origin, { ca: authority.pem })
    session.on('error', () => undefined)
    sessions.set(origin, session)
    return session
  }
  beforeAll(() => {
    dial.tls = authority.issue()
    dial.webSocket = (url, headers) => {
      // A server in a process of its own, which a test starts without a certificate.
      if (url.startsWith('http:')) return plainWebSocket(url, headers)
      const { origin, pathname, search } = new URL(url)
      return webSocketOver(sessionTo(origin), pathname + search, headers)
    }
    globals.fetch = (url: string, init: RequestInit = {}) => fetchOf(url, { ...init, dispatcher })
  })
  afterAll(async () => {
    dial.tls = undefined
    dial.webSocket = plainWebSocket
    globals.fetch = plain
    for (const session of sessions.values()) session.destroy()
    await dispatcher.destroy()
    // The suites did use it.
    expect(sessions.size).toBeGreaterThan(0)
  })
}
