import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { expect, test } from 'vitest'
import type { HttpRoute, SocketRoute } from '../../core/ports/transport.ts'
import { testServer } from '../../../test/support/test-server.ts'

/** Says nothing for a while, then streams until its client leaves. */
function streaming(before: Promise<unknown> = Promise.resolve()) {
  const state = { begun: 0, ended: 0 }
  const route: HttpRoute = {
    method: 'GET',
    path: '/stream',
    access: 'public',
    async handle() {
      await before
      return { status: 200, headers: { 'content-type': 'text/event-stream' }, frames: frames() }
    },
  }
  async function* frames(): AsyncGenerator<string, void> {
    state.begun++
    try {
      for (;;) {
        yield 'data: 1\n\n'
        await new Promise((resolve) => setTimeout(resolve, 5))
      }
    } finally {
      state.ended++
    }
  }
  return { route, state }
}

const STREAM = 'GET /stream HTTP/1.1\r\nhost: localhost\r\n\r\n'
const UPGRADE =
  'GET /socket HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n'

const SOCKET: SocketRoute = {
  method: 'WS',
  path: '/socket',
  access: 'public',
  async handle(socket) {
    for await (const frame of socket) await socket.send([frame])
  },
}

/** Sends it all at once. */
async function client(port: number, text: string): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  await once(socket, 'connect')
  socket.write(text)
  return socket
}

/** Everything that comes until the server ends the connection. */
async function heardBy(socket: Socket): Promise<string> {
  let heard = ''
  socket.setEncoding('latin1').on('data', (chunk: string) => (heard += chunk))
  await once(socket, 'close')
  return heard
}

const statusLines = (text: string): number => text.match(/HTTP\/1\.1 \d/g)?.length ?? 0

test.each([
  ['what is no HTTP', 'nonsense\r\n\r\n'],
  ['an upgrade', UPGRADE],
  ['an upgrade to nothing', UPGRADE.replace('/socket', '/nothing')],
])('%s behind a request is never answered in the middle of the answer', async (_, second) => {
  for (const turns of [0, 1, 2, 3, 5, 8]) {
    // The answer begins while the other one is made.
    const before = (async () => {
      for (let turn = 0; turn < turns; turn++) await Promise.resolve()
    })()
    const { port } = await testServer({ routes: [streaming(before).route, SOCKET] })
    const heard = await heardBy(await client(port, STREAM + second))
    expect(statusLines(heard)).toBeLessThanOrEqual(1)
  }
})

test('an upgrade behind an answer that is over is taken', async () => {
  const { port } = await testServer({ routes: [SOCKET] })
  const socket = await client(port, 'GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n')
  await once(socket, 'data')
  socket.write(UPGRADE)
  const [answer] = (await once(socket, 'data')) as [Buffer]
  expect(String(answer)).toMatch(/^HTTP\/1\.1 101/)
  socket.destroy()
})

test('a stream that waits behind another ends when its client leaves', async () => {
  const { route, state } = streaming()
  const { port } = await testServer({ routes: [route] })
  const socket = await client(port, STREAM + STREAM)
  await expect.poll(() => state.begun).toBe(2)
  socket.destroy()
  await expect.poll(() => state.ended).toBe(2)
})

test('a request that breaks off while it waits behind another is not our failure', async () => {
  const { route, state } = streaming()
  const thrown: unknown[] = []
  const upload: HttpRoute = {
    method: 'POST',
    path: '/upload',
    access: 'public',
    async handle(request) {
      await request.text().catch((error: unknown) => {
        thrown.push(error)
        throw error
      })
      return new Response()
    },
  }
  const { port, logged } = await testServer({ routes: [route, upload] })
  const socket = await client(port, `${STREAM}POST /upload HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000\r\n\r\nabc`)
  await expect.poll(() => state.begun).toBe(1)
  socket.destroy()
  await expect.poll(() => thrown.length).toBe(1)
  await expect.poll(() => state.ended).toBe(1)
  expect(logged.filter(({ level }) => level === 'error')).toEqual([])
})

const SLOW = 'GET /slow HTTP/1.1\r\nhost: localhost\r\n'

/** Answers nobody, and counts who asked. */
function slow(access: 'public' | 'request') {
  const state = { begun: 0 }
  const handle: HttpRoute['handle'] = () => {
    state.begun++
    return new Promise<Response>(() => undefined)
  }
  const route = { method: 'GET', path: '/slow', access, handle } as HttpRoute
  return { route, state }
}

test('a stranger may pile up fewer requests than somebody who is known', async () => {
  const { route, state } = slow('public')
  const me: HttpRoute = { method: 'GET', path: '/me', access: 'request', handle: async () => Response.json('alice') }
  const secret = 'a-secret-of-alice-0123'
  const { port } = await testServer({ routes: [route, me], tokens: { alice: secret }, anonymous: false })
  const stranger = await client(port, `${SLOW}\r\n`.repeat(50))
  await once(stranger.resume(), 'close')
  expect(state.begun).toBeLessThan(20)
  const known = await client(port, `GET /me HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${secret}\r\n\r\n`)
  await once(known, 'data')
  state.begun = 0
  known.write(`${SLOW}\r\n`.repeat(50))
  await expect.poll(() => state.begun).toBe(50)
  known.destroy()
})
