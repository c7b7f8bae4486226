import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { UampError } from '../protocol/errors.ts'
import { nodeHttp } from '../server/node/http-client.ts'
import { sseParser } from '../wire/sse-parse.ts'
import { fetchHttp } from '../core/http/fetch-http.ts'
import type { HttpClient } from '../core/ports/http.ts'
import type { Timeouts } from '../core/ports/http.ts'
import { callUpstream, streamBounds, type UpstreamCall } from './upstream.ts'
import { upstreamEvents } from './upstream-events.ts'

type Handle = (request: IncomingMessage, response: ServerResponse, attempt: number) => void

async function upstream(handle: Handle) {
  let attempts = 0
  const server = createServer((request, response) => {
    request.resume()
    handle(request, response, ++attempts)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  const call = ({ timeouts, ...options }: Partial<Omit<UpstreamCall, 'timeouts'>> & { timeouts?: Partial<Timeouts> } = {}) =>
    callUpstream({
      ...streamBounds(timeouts),
      name: 'vendor',
      http: fetchHttp(),
      request: { url, method: 'POST', headers: {}, body: '{}' },
      signal: new AbortController().signal,
      explain: (body) => (body as { error?: { message?: string } } | undefined)?.error?.message,
      random: () => 0,
      ...options,
    })
  return { call, attempts: () => attempts }
}

async function text(body: AsyncIterable<Uint8Array>): Promise<string> {
  let all = ''
  for await (const chunk of body) all += Buffer.from(chunk).toString()
  return all
}

async function failure(promise: Promise<unknown>): Promise<UampError> {
  const error = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  if (!(error instanceof UampError)) throw new Error(`expected a UampError, not ${String(error)}`)
  return error
}

const refuse = (response: ServerResponse, status: number, headers: Record<string, string> = {}) =>
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end('{"error":{"message":"the reason"}}')

test.each([408, 409, 429, 500, 502, 503, 529])('%d is tried again, and then it passes', async (status) => {
  const { call, attempts } = await upstream((_, response, attempt) => {
    if (attempt < 3) refuse(response, status, { 'retry-after-ms': '1' })
    else response.end('fine')
  })
  expect(await text((await call()).body)).toBe('fine')
  expect(attempts()).toBe(3)
})

test.each([
  [400, 'invalid_request', 'vendor answered 400: the reason'],
  [404, 'not_found', 'vendor answered 404: the reason'],
  [413, 'too_large', 'vendor answered 413: the reason'],
  // The vendor's words about a key may hold a part of it.
  [401, 'provider_error', 'vendor answered 401'],
  [403, 'provider_error', 'vendor answered 403'],
])('%d is not', async (status, code, message) => {
  const { call, attempts } = await upstream((_, response) => refuse(response, status))
  const error = await failure(call())
  expect([error.code, error.message, attempts()]).toEqual([code, message, 1])
})

test('nor is what would cost again', async () => {
  const { call, attempts } = await upstream((_, response) => refuse(response, 500, { 'x-should-retry': 'false' }))
  await failure(call())
  expect(attempts()).toBe(1)
})

test('the last refusal is told, with when to come again', async () => {
  const { call, attempts } = await upstream((_, response) => refuse(response, 429, { 'retry-after-ms': '2' }))
  const error = await failure(call({ retries: 1 }))
  expect([error.code, error.details, attempts()]).toEqual(['rate_limited', { status: 429, retry_after: 0.002 }, 2])
})

test('who is told to come back in an hour is not kept waiting', async () => {
  const { call, attempts } = await upstream((_, response) => refuse(response, 429, { 'retry-after': '3600' }))
  expect((await failure(call())).details).toMatchObject({ retry_after: 3600 })
  expect(attempts()).toBe(1)
})

test('nor is whoever is told to come back in some seconds: a client that has seen nothing yet can be told the same', async () => {
  const { call, attempts } = await upstream((_, response) => refuse(response, 429, { 'retry-after': '1' }))
  expect((await failure(call())).details).toMatchObject({ retry_after: 1 })
  expect(attempts()).toBe(1)
})

test('a server that hangs is asked once', async () => {
  const { call, attempts } = await upstream(() => undefined)
  expect((await failure(call({ timeouts: { firstByteMs: 30 } }))).code).toBe('timeout')
  expect(attempts()).toBe(1)
})

test.each([
  [500, {}],
  [409, { 'retry-after-ms': '1' }],
  [429, {}],
  [503, {}],
])('what has effects is not sent again after %d %o', async (status, headers) => {
  const { call, attempts } = await upstream((_, response) => refuse(response, status, headers))
  await failure(call({ once: true }))
  expect(attempts()).toBe(1)
})

test('nor when the connection breaks, also one that was kept; but when it surely did not begin', async () => {
  const broken = await upstream((request) => void request.socket.destroy())
  await failure(broken.call({ once: true }))
  expect(broken.attempts()).toBe(1)
  const http = nodeHttp()
  onTestFinished(() => http.close())
  const kept = await upstream((request, response, attempt) => (attempt === 1 ? response.end('fine') : request.socket.destroy()))
  await text((await kept.call({ once: true, http })).body)
  await failure(kept.call({ once: true, http }))
  expect(kept.attempts()).toBe(2)
  for (const status of [429, 503]) {
    const { call, attempts } = await upstream((_, response, attempt) => {
      if (attempt < 3) refuse(response, status, { 'retry-after-ms': '1' })
      else response.end('fine')
    })
    expect(await text((await call({ once: true })).body)).toBe('fine')
    expect(attempts()).toBe(3)
  }
})

test('what has effects is sent again when nobody was there', async () => {
  let attempts = 0
  const refused = Object.assign(new TypeError('fetch failed'), { cause: { code: 'ECONNREFUSED' } })
  const { call } = await upstream((_, response) => response.end('fine'))
  const http: HttpClient = { request: (request) => (++attempts < 2 ? Promise.reject(refused) : fetchHttp().request(request)) }
  expect(await text((await call({ once: true, http })).body)).toBe('fine')
  expect(attempts).toBe(2)
})

test('an error page is not shown', async () => {
  const { call } = await upstream((_, response) => response.writeHead(502).end('<html><h1>Bad gateway</h1></html>'))
  expect((await failure(call({ retries: 0 }))).message).toBe('vendor answered 502')
})

test('a connection that breaks before the answer is tried again; in the middle of it the answer is cut off', async () => {
  const { call, attempts } = await upstream((request, response, attempt) => {
    if (attempt === 1) return void request.socket.destroy()
    response.writeHead(200)
    response.write('half', () => response.destroy())
  })
  const { body } = await call()
  const error = await failure(text(body))
  expect([error.code, error.message, attempts()]).toEqual(['provider_error', 'The answer of vendor was cut off', 2])
})

test('nobody there', async () => {
  const error = await failure(
    callUpstream({
      name: 'vendor',
      http: fetchHttp(),
      request: { url: 'http://127.0.0.1:9/', method: 'POST', headers: {} },
      signal: new AbortController().signal,
      explain: () => undefined,
      ...streamBounds(),
      retries: 0,
    }),
  )
  expect([error.code, error.message]).toEqual(['provider_error', 'vendor cannot be reached'])
})

test('an answer that does not come, and one that falls silent, time out', async () => {
  const silent = await upstream(() => undefined)
  const never = await failure(silent.call({ retries: 0, timeouts: { firstByteMs: 30 } }))
  expect([never.code, never.message]).toEqual(['timeout', 'vendor did not answer within 30 ms'])
  const halting = await upstream((_, response) => void response.writeHead(200).write('one'))
  const { body } = await halting.call({ timeouts: { idleMs: 30 } })
  expect((await failure(text(body))).message).toBe('vendor fell silent for 30 ms')
})

const CLIENTS: [string, () => HttpClient][] = [
  ['fetch', fetchHttp],
  ['node', nodeHttp],
]

describe.each(CLIENTS)('a vendor that never stops, over %s', (_, client) => {
  const endlessly = (response: ServerResponse, piece: string) => {
    const write = (): void => {
      while (!response.destroyed && response.write(piece));
    }
    response.on('drain', write)
    write()
  }

  test('sends too much', async () => {
    const { call } = await upstream((_request, response) => endlessly(response.writeHead(200), 'x'.repeat(10_000)))
    const { body } = await call({ http: client(), maxBytes: 1_000_000 })
    const error = await failure(text(body))
    expect([error.code, error.message]).toEqual(['provider_error', 'vendor sent too much: The answer has more than 1000000 bytes'])
  })

  test('does not come to an end', async () => {
    const { call, attempts } = await upstream((_request, response) => {
      response.writeHead(200)
      const timer = setInterval(() => response.write('x'), 5)
      response.on('close', () => clearInterval(timer))
    })
    const { body } = await call({ http: client(), timeouts: { totalMs: 200 } })
    const error = await failure(text(body))
    expect([error.code, error.message]).toEqual(['timeout', 'vendor did not come to an end within 200 ms'])
    expect(attempts()).toBe(1)
  })

  test('writes a line without an end', async () => {
    const { call } = await upstream((_request, response) => endlessly(response.writeHead(200), 'data: x'.repeat(10_000)))
    const { body } = await call({ http: client() })
    const read = async () => {
      for await (const events of upstreamEvents(body, { name: 'vendor', parse: sseParser({ limit: 1_000_000 }) }))
        expect(events).toEqual([])
    }
    const error = await failure(read())
    expect([error.code, error.message]).toEqual(['provider_error', 'vendor sent something that is not a stream of events'])
    expect(String(error.cause)).toContain('an event of more than 1000000 characters')
  })

  test('refuses slowly, and is not asked again for longer than the whole may take', async () => {
    const { call } = await upstream((_request, response) => void response.writeHead(503).write('{'))
    const error = await failure(call({ http: client(), timeouts: { totalMs: 200 } }))
    expect([error.code, error.message]).toEqual(['timeout', 'vendor did not come to an end within 200 ms'])
  })
})

test('headers that are too long say so', async () => {
  const { call } = await upstream((_request, response) => void response.writeHead(200, { 'x-long': 'x'.repeat(100_000) }).end())
  const error = await failure(call({ http: nodeHttp() }))
  expect([error.code, error.message]).toEqual(['provider_error', 'vendor sent too much: The headers of the answer are too long'])
})

test('an abort closes the connection: while it waits to try again, before the answer, in the middle of it', async () => {
  const reason = new UampError('cancelled', 'Enough')
  const waits = await upstream((_, response) => refuse(response, 503, { 'retry-after-ms': '500' }))
  const stop = new AbortController()
  const waiting = failure(waits.call({ signal: stop.signal }))
  await expect.poll(waits.attempts).toBe(1)
  stop.abort(reason)
  expect(await waiting).toBe(reason)

  const closed: Promise<unknown>[] = []
  const { call, attempts } = await upstream((_, response, attempt) => {
    closed.push(once(response, 'close'))
    if (attempt === 2) response.write('one')
  })
  const early = new AbortController()
  const first = failure(call({ signal: early.signal }))
  await expect.poll(attempts).toBe(1)
  early.abort(reason)
  expect(await first).toBe(reason)
  const late = new AbortController()
  const { body } = await call({ signal: late.signal })
  const reading = failure(text(body))
  late.abort(reason)
  expect(await reading).toBe(reason)
  await Promise.all(closed)
})

test('events are put together from pieces, also where a character was cut in two', async () => {
  const bytes = new TextEncoder().encode('a|grüße 🙂|b|')
  const parser = () => {
    let rest = ''
    return (chunk: string) => {
      const parts = (rest + chunk).split('|')
      rest = parts.pop() ?? ''
      return parts
    }
  }
  for (const size of [1, 2, 3, 5, 100]) {
    async function* body() {
      for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
    }
    const events: string[] = []
    for await (const some of upstreamEvents(body(), { name: 'vendor', parse: parser() })) events.push(...some)
    expect(events).toEqual(['a', 'grüße 🙂', 'b'])
  }
})

test('comments for ever are no answer', async () => {
  async function* body() {
    for (;;) {
      yield new TextEncoder().encode(': still here\n\n')
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
  }
  const read = async () => {
    for await (const events of upstreamEvents(body(), { name: 'vendor', parse: () => [], silenceMs: 20 })) expect(events).toEqual([])
  }
  expect((await failure(read())).message).toBe('vendor said nothing for 20 ms')
})
