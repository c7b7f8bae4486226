import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { httpClientContract } from '../../../test/contract/http-client.ts'
import { nodeHttp } from './http-client.ts'

httpClientContract('node', () => {
  const http = nodeHttp()
  onTestFinished(() => http.close())
  return http
})

const BOUNDS = { maxBytes: 1024 * 1024, timeouts: { firstByteMs: 5_000, idleMs: 5_000, totalMs: 10_000 } }

async function upstream(handle: (request: IncomingMessage, response: ServerResponse) => void) {
  const sockets = new Set<Socket>()
  const server = createServer(handle).listen(0, '127.0.0.1')
  server.on('connection', (socket) => sockets.add(socket))
  await once(server, 'listening')
  const http = nodeHttp()
  onTestFinished(() => {
    http.close()
    server.closeAllConnections()
    server.close()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  const request = (signal = new AbortController().signal) =>
    http.request({ url, method: 'POST', headers: {}, body: 'hällo', signal, ...BOUNDS })
  return { request, sockets, server, url }
}

async function text(body: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = []
  for await (const chunk of body) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

test('sends a body and reads the answer, again and again over one connection', async () => {
  const { request, sockets } = await upstream((incoming, response) => {
    response.writeHead(201, { 'x-length': incoming.headers['content-length'] ?? '' })
    incoming.pipe(response)
  })
  for (let n = 0; n < 5; n++) {
    const { status, headers, body } = await request()
    expect([status, headers.get('x-length'), await text(body)]).toEqual([201, '6', 'hällo'])
  }
  expect(sockets.size).toBeLessThan(3)
})

test('an abort closes the connection, before the answer and in the middle of it', async () => {
  const seen: Promise<unknown>[] = []
  const { request } = await upstream((_, response) => {
    seen.push(once(response, 'close'))
    if (seen.length === 2) response.write('one')
  })
  const early = new AbortController()
  const waiting = request(early.signal)
  await expect.poll(() => seen.length).toBe(1)
  early.abort(new Error('stop'))
  await expect(waiting).rejects.toThrow('stop')
  await seen[0]

  const late = new AbortController()
  const { body } = await request(late.signal)
  const read = (async () => {
    for await (const chunk of body) {
      expect(Buffer.from(chunk).toString()).toBe('one')
      late.abort(new Error('enough'))
    }
  })()
  await expect(read).rejects.toThrow('enough')
  await seen[1]
  await expect(request(AbortSignal.abort(new Error('never')))).rejects.toThrow('never')
})

test('leaving the answer closes the connection', async () => {
  let closed: Promise<unknown> | undefined
  const { request } = await upstream((_, response) => {
    closed = once(response, 'close')
    response.write('one')
  })
  const { body } = await request()
  for await (const _ of body) break
  await closed
})

test('a connection that the other side let go of meanwhile is replaced', async () => {
  const { request, sockets } = await upstream((_, response) => response.end('ok'))
  await text((await request()).body)
  // Closed without a word, so that the client finds out only when it writes.
  for (const socket of sockets) socket.resetAndDestroy()
  expect(await text((await request()).body)).toBe('ok')
})

test('an answer that breaks off rejects', async () => {
  const { request } = await upstream((_, response) => {
    response.writeHead(200, { 'content-length': '100' })
    response.write('half', () => response.destroy())
  })
  const { body } = await request()
  await expect(text(body)).rejects.toThrow()
})

test('a first byte that is late by less than a second is late, and not checked twice a second', async () => {
  const { url } = await upstream(() => undefined)
  const http = nodeHttp()
  onTestFinished(() => http.close())
  const signal = new AbortController().signal
  const request = {
    url,
    method: 'GET',
    headers: {},
    signal,
    maxBytes: 100,
    timeouts: { firstByteMs: 50, idleMs: 5_000, totalMs: 10_000 },
  } as const
  const late: number[] = []
  for (let n = 0; n < 3; n++) {
    const begun = performance.now()
    await expect(http.request(request)).rejects.toMatchObject({ name: 'TimeoutError' })
    late.push(performance.now() - begun)
  }
  // The best of three, because other tests share the machine.
  expect(Math.min(...late)).toBeLessThan(300)
})
