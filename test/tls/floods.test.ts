/** What a client of HTTP/2 can do to a server beside its requests. Each is disconnected, and a neighbour goes on meanwhile. */
import { connect as connectHttp2 } from 'node:http2'
import { expect, onTestFinished } from 'vitest'
import type { Route } from '../../src/core/ports/transport.ts'
import { Authority } from '../support/certificates.ts'
import { END_HEADERS, END_STREAM, fields, number, RawHttp2, setting, TYPE } from '../support/http2-frames.ts'
import type { Frame } from '../support/http2-frames.ts'
import { testServer } from '../support/test-server.ts'
import { verifies } from '../support/verifies.ts'

const authority = new Authority()

const waits: Route = { method: 'GET', path: '/waits', access: 'request', handle: () => new Promise(() => undefined) }
const read: Route = {
  method: 'POST',
  path: '/read',
  access: 'request',
  handle: async (request) => Response.json({ bytes: (await request.text()).length }),
}

/** A server that is flooded until it disconnects the client, which nobody else may notice. */
async function flooded(flood: (raw: RawHttp2) => void | Promise<void>): Promise<void> {
  const server = await testServer({ tls: authority.issue(), routes: [waits, read] })
  const neighbour = connectHttp2(server.url, { ca: authority.pem })
  onTestFinished(() => neighbour.destroy())
  const raw = await RawHttp2.open(server.port)
  for (let round = 0; raw.isOpen && round < 2_000; round++) {
    await flood(raw)
    await new Promise(setImmediate)
  }
  await expect.poll(() => raw.isOpen).toBe(false)
  const status = await new Promise((resolve, reject) => {
    const request = neighbour.request({ ':path': '/health' })
    request.on('response', (headers) => resolve(headers[':status'])).on('error', reject)
  })
  expect(status).toBe(200)
  expect(server.gateway.heldBytes).toBe(0)
}

const times = (count: number, make: (index: number) => Frame): Frame[] => Array.from({ length: count }, (_, index) => make(index))

verifies('h2.rapid-reset', 'streams that are opened and reset at once', async () => {
  await flooded((client) => {
    const { stream, frame } = client.request('/waits')
    client.send(frame, { type: TYPE.reset, stream, body: number(8) })
  })
})

verifies('h2.rapid-reset', 'streams that the client makes the server reset', async () => {
  await flooded((client) => {
    const { stream, frame } = client.request('/waits')
    // A window of nothing is a mistake of the stream (RFC 9113 §6.9).
    client.send(frame, { type: TYPE.window, stream, body: number(0) })
  })
})

verifies('h2.control-floods', 'pings', async () => {
  await flooded((client) => void client.send(...times(100, () => ({ type: TYPE.ping, body: Buffer.alloc(8) }))))
})

verifies('h2.control-floods', 'settings', async () => {
  await flooded((client) => void client.send(...times(100, () => ({ type: TYPE.settings, body: setting(4, 65_535) }))))
})

verifies('h2.noise', 'windows that are opened again and again', async () => {
  await flooded((client) => void client.send(...times(1_000, () => ({ type: TYPE.window, body: number(1) }))))
})

verifies('h2.noise', 'priorities', async () => {
  const body = Buffer.concat([number(0), Buffer.from([1])])
  await flooded((client) => void client.send(...times(1_000, (index) => ({ type: TYPE.priority, stream: 2 * index + 1, body }))))
})

verifies('h2.noise', 'frames of unknown types', async () => {
  await flooded((client) => void client.send(...times(100, () => ({ type: 0xfa, body: Buffer.alloc(1_000) }))))
})

verifies('h2.noise', 'a body of empty frames', async () => {
  let stream = 0
  await flooded((client) => {
    stream ||= client.ask('/read', { method: 'POST', flags: END_HEADERS })
    client.send(...times(100, () => ({ type: TYPE.data, stream })))
  })
})

verifies('h2.continuations', 'headers that never end', async () => {
  let begun = false
  await flooded((client) => {
    if (!begun) client.ask('/waits', { flags: END_STREAM })
    begun = true
    client.send({ type: TYPE.continuation, stream: 1, body: fields([['x-more', 'x'.repeat(100)]]) })
  })
})
