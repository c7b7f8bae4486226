/** A browser, which speaks HTTP/2 to every server that does, and opens WebSockets over it where the server allows that. */
import { expect, onTestFinished, test } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { events } from '../../src/transports/events/index.ts'
import type { HttpRoute, SocketRoute } from '../../src/core/ports/transport.ts'
import { Authority } from '../support/certificates.ts'
import { chromium, launch } from '../support/chromium.ts'
import { testServer } from '../support/test-server.ts'

const authority = new Authority()

const page: HttpRoute = {
  method: 'GET',
  path: '/page',
  access: 'public',
  handle: async () => new Response('<!doctype html><title>page</title>', { headers: { 'content-type': 'text/html' } }),
}
const ticks: HttpRoute = {
  method: 'GET',
  path: '/ticks',
  access: 'public',
  async *handle() {
    for (let tick = 1; tick <= 3; tick++) yield `id: ${tick}\ndata: ${tick}\n\n`
  },
}
/** Says how it was opened, and then what it hears. HTTP/2 has no key. */
const echo: SocketRoute = {
  method: 'WS',
  path: '/echo',
  access: 'request',
  async handle(socket, { request }) {
    await socket.send([request.headers.has('sec-websocket-key') ? 'HTTP/1.1' : 'HTTP/2'])
    for await (const message of socket) await socket.send([message])
  },
}

test('Chromium streams by fetch and EventSource, and opens a WebSocket, over one protocol: HTTP/2', async ({ skip }) => {
  if (chromium === undefined) return skip('chromium is not on the PATH')
  const server = await testServer({ tls: authority.issue(), agents: [demo()], routes: [page, ticks, echo], transports: [events()] })
  // It has an authority of its own, which this test must not change.
  const browser = await launch(chromium, ['--ignore-certificate-errors'])
  onTestFinished(() => browser.close())
  const tab = await browser.newPage()
  const errors: Error[] = []
  tab.on('pageerror', (error) => errors.push(error))
  await tab.goto(`${server.url}/page`)
  const seen = await tab.evaluate(async () => {
    const heard: string[] = await new Promise((resolve, reject) => {
      const source = new EventSource('/ticks')
      const all: string[] = []
      source.addEventListener('error', reject)
      source.addEventListener('message', ({ data }) => {
        if (all.push(data as string) < 3) return
        source.close()
        resolve(all)
      })
    })
    const asked = [{ type: 'session.create' }, { type: 'input.text', text: '/count 20' }, { type: 'response.create' }]
    const answer = await fetch('/events', { method: 'POST', headers: { accept: 'text/event-stream' }, body: JSON.stringify(asked) })
    const reader = (answer.body as ReadableStream<Uint8Array>).getReader()
    const decoder = new TextDecoder()
    let text = ''
    while (!text.includes('response.done')) text += decoder.decode((await reader.read()).value)
    await reader.cancel()
    const said: string[] = await new Promise((resolve, reject) => {
      const socket = new WebSocket(`${location.origin.replace('http', 'ws')}/echo`)
      const all: string[] = []
      socket.addEventListener('error', () => reject(new Error('no WebSocket')))
      socket.addEventListener('message', ({ data }) => {
        if (all.push(data as string) === 1) return socket.send('hello')
        socket.close(4000)
        return resolve(all)
      })
    })
    const [loaded] = performance.getEntriesByType('navigation') as PerformanceNavigationTiming[]
    return { heard, deltas: text.match(/"type":"response.delta"/g)?.length, said, protocol: loaded?.nextHopProtocol }
  })
  expect(seen).toEqual({ heard: ['1', '2', '3'], deltas: 20, said: ['HTTP/2', 'hello'], protocol: 'h2' })
  expect(errors).toEqual([])
})
