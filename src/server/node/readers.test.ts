import { once } from 'node:events'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { connect, type Socket } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import type { HttpRoute } from '../../core/ports/transport.ts'
import { testServer } from '../../../test/support/test-server.ts'

const MIB = 1024 * 1024

/** An answer in one piece that is more than the kernel keeps. */
const large: HttpRoute = { method: 'GET', path: '/large', access: 'public', handle: async () => new Response('x'.repeat(20 * MIB)) }

/** The server's own ends of the connections on which something is asked. */
function askedOn(): Socket[] {
  const sockets: Socket[] = []
  const onStart = (message: unknown): void => void sockets.push((message as { socket: Socket }).socket)
  subscribe('http.server.request.start', onStart)
  onTestFinished(() => void unsubscribe('http.server.request.start', onStart))
  return sockets
}

test('whoever reads nothing of an answer in one piece is cut', async () => {
  const { port } = await testServer({ routes: [large], limits: { stallMs: 100 } })
  const sockets = askedOn()
  for (let i = 0; i < 3; i++) {
    const client = connect(port, '127.0.0.1').pause()
    client.on('error', () => undefined)
    onTestFinished(() => void client.destroy())
    await once(client, 'connect')
    client.write('GET /large HTTP/1.1\r\nhost: localhost\r\n\r\n')
  }
  await expect.poll(() => sockets.map(({ destroyed }) => destroyed), { timeout: 10_000 }).toEqual([true, true, true])
})

test('whoever reads gets it all, and may ask again after a while', async () => {
  const { url } = await testServer({ routes: [large], limits: { stallMs: 1000 } })
  const sockets = askedOn()
  for (let i = 0; i < 2; i++) {
    expect((await (await fetch(`${url}/large`)).text()).length).toBe(20 * MIB)
    // Idle, with nothing that waits for it, a connection stands still for as long as it likes.
    await new Promise((resolve) => setTimeout(resolve, 2000))
  }
  expect(sockets.map(({ destroyed }) => destroyed)).toEqual([false, false])
})
