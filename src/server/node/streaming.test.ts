import { connect as netConnect } from 'node:net'
import { once } from 'node:events'
import { expect, test } from 'vitest'
import { testServer } from '../../../test/support/test-server.ts'
import type { HttpRoute } from '../../core/ports/transport.ts'
import { UampError } from '../../protocol/errors.ts'

const get = (path: string, handle: Extract<HttpRoute, { access: 'request' }>['handle']): HttpRoute => ({
  method: 'GET',
  path,
  access: 'request',
  handle,
})

/** A promise and the function that fulfils it. */
function signal<T = void>() {
  let fire!: (value: T) => void
  const fired = new Promise<T>((resolve) => (fire = resolve))
  return { fired, fire }
}

async function* endless(ended: () => void): AsyncGenerator<string, void> {
  try {
    for (;;) yield `data: ${'x'.repeat(1000)}\n\n`
  } finally {
    ended()
  }
}

test('a generator is streamed as server-sent events, each text as it comes', async () => {
  const more = signal()
  const { url } = await testServer({
    routes: [
      get('/stream', async function* (request) {
        yield `data: ${new URL(request.url).searchParams.get('name')}\n\n`
        await more.fired
        yield 'data: zwölf\n\n'
      }),
    ],
  })
  const response = await fetch(`${url}/stream?name=one`)
  expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
  expect(response.headers.get('cache-control')).toContain('no-cache')
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
  expect((await reader?.read())?.value).toBe('data: one\n\n')
  more.fire()
  expect((await reader?.read())?.value).toBe('data: zwölf\n\n')
  expect((await reader?.read())?.done).toBe(true)
})

test('what a generator throws before its first text is an HTTP error; later it cuts the stream', async () => {
  const { url, logged } = await testServer({
    routes: [
      get('/early', async function* () {
        if (url) throw new UampError('invalid_request', 'No name')
        yield ''
      }),
      get('/late', async function* () {
        yield 'data: 1\n\n'
        throw new Error('oops')
      }),
    ],
  })
  const early = await fetch(`${url}/early`)
  expect([early.status, await early.json()]).toEqual([400, { error: { code: 'invalid_request', message: 'No name' } }])
  await expect((await fetch(`${url}/late`)).text()).rejects.toThrow()
  expect(logged).toMatchObject([{ level: 'error', message: 'A stream failed' }])
})

test('a stream that fails ends in the error of its protocol, behind what was said', async () => {
  const frames = async function* (last: boolean) {
    yield 'data: 1\n\n'
    const tooLarge = {
      eachText: (visit: (text: string) => void): void => {
        visit('data: 2\n\n')
        visit('x'.repeat(2 ** 29))
      },
    }
    if (last) return tooLarge
    yield tooLarge
    return undefined
  }
  const failure = ({ code }: UampError): string => `data: ${code}\n\n`
  const streamed = (last: boolean) => async () => ({ status: 200, headers: {}, frames: frames(last), failure })
  const { url } = await testServer({ routes: [get('/next', streamed(false)), get('/last', streamed(true))] })
  expect(await (await fetch(`${url}/next`)).text()).toBe('data: 1\n\ndata: too_large\n\n')
  expect(await (await fetch(`${url}/last`)).text()).toBe('data: 1\n\ndata: too_large\n\n')
})

test('a client that leaves runs the finally of a generator that never waits', async () => {
  const ended = signal()
  const { url } = await testServer({ routes: [get('/endless', () => endless(ended.fire))] })
  const abort = new AbortController()
  const response = await fetch(`${url}/endless`, { signal: abort.signal })
  await response.body?.getReader().read()
  // It does not starve the others either.
  expect((await fetch(`${url}/health`)).status).toBe(200)
  abort.abort()
  await ended.fired
})

test('a client that leaves aborts the signal, and so ends a generator that waits', async () => {
  const ended = signal()
  const { url } = await testServer({
    routes: [
      get('/waiting', async function* (_, call) {
        try {
          yield 'data: 1\n\n'
          await once(call.signal, 'abort')
          yield 'data: 2\n\n'
        } finally {
          ended.fire()
        }
      }),
    ],
  })
  const abort = new AbortController()
  const response = await fetch(`${url}/waiting`, { signal: abort.signal })
  await response.body?.getReader().read()
  abort.abort()
  await ended.fired
})

test('streamed frames go out with their status and headers, which are there before the first frame', async () => {
  const first = signal<string>()
  const { url } = await testServer({
    routes: [
      get('/frames', async () => ({
        status: 201,
        headers: { 'content-type': 'text/event-stream', 'x-session-id': 's1' },
        frames: (async function* () {
          yield await first.fired
          yield new TextEncoder().encode('bytes')
        })(),
      })),
    ],
  })
  const response = await fetch(`${url}/frames`, { headers: { origin: 'http://localhost:5173' } })
  expect([response.status, response.headers.get('x-session-id')]).toEqual([201, 's1'])
  expect(response.headers.get('access-control-allow-origin')).toBe('http://localhost:5173')
  first.fire('text, ')
  expect(await response.text()).toBe('text, bytes')
})

test('HEAD does not begin the stream', async () => {
  let began = false
  const frames = async function* () {
    began = true
    yield 'data: 1\n\n'
  }
  const { url } = await testServer({
    routes: [get('/generator', frames), get('/frames', async () => ({ status: 200, headers: { 'x-a': 'b' }, frames: frames() }))],
  })
  const head = await fetch(`${url}/generator`, { method: 'HEAD' })
  expect([head.status, head.headers.get('content-type')]).toEqual([200, 'text/event-stream; charset=utf-8'])
  expect((await fetch(`${url}/frames`, { method: 'HEAD' })).headers.get('x-a')).toBe('b')
  expect(began).toBe(false)
})

test('a reader that stops makes the writer wait, and goes on where it stopped', async () => {
  let count = 0
  const total = 20_000
  const { port } = await testServer({
    limits: { outboundBytes: 64 * 1024 },
    routes: [
      get('/much', async function* () {
        for (; count < total; count++) yield `data: ${'x'.repeat(1000)}\n\n`
      }),
    ],
  })
  const client = netConnect(port, '127.0.0.1')
  client.write('GET /much HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n')
  await once(client, 'readable')
  let before = -1
  while (before !== count) {
    before = count
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  expect(count).toBeLessThan(total)
  let text = ''
  for await (const chunk of client) text += String(chunk)
  expect(text.match(/data: /g)?.length).toBe(total)
})

test('a reader that takes nothing for too long is cut, and the finally runs', async () => {
  const ended = signal()
  const { port } = await testServer({
    limits: { outboundBytes: 64 * 1024, stallMs: 100 },
    routes: [get('/endless', () => endless(ended.fire))],
  })
  const client = netConnect(port, '127.0.0.1')
  client.on('error', () => {})
  client.write('GET /endless HTTP/1.1\r\nhost: localhost\r\n\r\n')
  await ended.fired
  client.destroy()
})

test('a reader that is cut in the middle of a large frame gets the rest of it, and the error behind it', async () => {
  const large = 'x'.repeat(24_000_000)
  const cut = signal()
  async function* one(): AsyncGenerator<string, void> {
    try {
      yield large
    } finally {
      cut.fire()
    }
  }
  const { port } = await testServer({
    limits: { outboundBytes: 64 * 1024, stallMs: 100 },
    routes: [get('/large', async () => ({ status: 200, headers: {}, failure: (error) => `[${error.code}]`, frames: one() }))],
  })
  const client = netConnect(port, '127.0.0.1')
  client.write('GET /large HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n')
  await cut.fired
  const { text } = chunked(Buffer.concat(await received(client)))
  expect(text === `${large}[timeout]`).toBe(true)
})

test('an HTTP/1.0 client gets the stream too', async () => {
  const { port } = await testServer({
    routes: [
      get('/stream', async function* () {
        yield 'data: 1\n\n'
        yield 'data: 2\n\n'
      }),
    ],
  })
  const client = netConnect(port, '127.0.0.1')
  client.write('GET /stream HTTP/1.0\r\nhost: localhost\r\n\r\n')
  let text = ''
  for await (const chunk of client) text += String(chunk)
  expect(text).toMatch(/\r\n\r\ndata: 1\n\ndata: 2\n\n$/)
})

test('answers to requests sent at once come one after the other', async () => {
  const go = signal()
  const { port } = await testServer({
    routes: [
      get('/first', async function* () {
        yield 'one,'
        await go.fired
        yield 'zwölf,'
      }),
      get('/second', async function* () {
        yield 'three,'
        go.fire()
        yield 'four,'
      }),
    ],
  })
  const client = netConnect(port, '127.0.0.1')
  client.write('GET /first HTTP/1.1\r\nhost: localhost\r\n\r\nGET /second HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n')
  let text = ''
  for await (const chunk of client.setEncoding('utf8')) text += String(chunk)
  const bodies = text.split(/HTTP\/1\.1 200 OK\r\n[^]*?\r\n\r\n/).slice(1)
  expect(bodies).toEqual(['4\r\none,\r\n7\r\nzwölf,\r\n0\r\n\r\n', '6\r\nthree,\r\n5\r\nfour,\r\n0\r\n\r\n'])
})

test('a frame of megabytes goes out in pieces, whole, and with the error of its protocol behind it', async () => {
  // Every character is two code units, and the first one puts each cut between the two.
  const large = `x${'😀'.repeat(1_500_000)}`
  const failure = (error: UampError) => `[${error.code}]`
  const whole = { status: 200, headers: {} }
  const { url } = await testServer({
    routes: [
      get('/next', async () => ({ ...whole, frames: frames([large, 'end']) })),
      get('/last', async () => ({ ...whole, frames: frames(['begin'], large) })),
      get('/fails', async () => ({ ...whole, failure, frames: frames([large], new UampError('overloaded', 'Too much')) })),
    ],
  })
  for (const [path, expected] of [
    ['/next', `${large}end`],
    ['/last', `begin${large}`],
    ['/fails', `${large}[overloaded]`],
  ] as const) {
    const socket = netConnect(Number(new URL(url).port), '127.0.0.1')
    socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`)
    const { text, largest } = chunked(Buffer.concat(await received(socket)))
    expect(text === expected, path).toBe(true)
    expect(largest).toBeLessThan(2 * 1024 * 1024)
  }
})

test('the event loop gets turns while an answer is written to a client that reads at once', async () => {
  let turns = 0
  const count = (): void => void (turns++, (counting = setImmediate(count)))
  let counting = setImmediate(count)
  const during = signal<number>()
  const { url } = await testServer({
    routes: [
      get('/stream', async function* () {
        const before = turns
        for (let i = 0; i < 24; i++) yield 'x'.repeat(60_000)
        during.fire(turns - before)
      }),
    ],
  })
  expect((await (await fetch(`${url}/stream`)).text()).length).toBe(24 * 60_000)
  clearImmediate(counting)
  expect(await during.fired).toBeGreaterThanOrEqual(2)
})

/** Frames that are there at once, and the last one or an error. */
async function* frames(all: readonly string[], last?: string | UampError): AsyncGenerator<string, string | void> {
  yield* all
  if (last instanceof UampError) throw last
  return last
}

async function received(socket: AsyncIterable<Buffer>): Promise<Buffer[]> {
  const all: Buffer[] = []
  for await (const bytes of socket) all.push(bytes)
  return all
}

/** Decodes the chunked coding. */
function chunked(bytes: Buffer): { readonly text: string; readonly largest: number } {
  const parts: Buffer[] = []
  for (let at = bytes.indexOf('\r\n\r\n') + 4; at < bytes.length;) {
    const end = bytes.indexOf('\r\n', at)
    const size = Number.parseInt(bytes.toString('latin1', at, end), 16)
    parts.push(bytes.subarray(end + 2, end + 2 + size))
    at = end + 2 + size + 2
  }
  return { text: Buffer.concat(parts).toString(), largest: Math.max(...parts.map(({ length }) => length)) }
}
