import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { connect, type Client, type ConnectOptions, type ServerEvent, type Status } from '../../src/client/node.ts'
import { serve } from '../../src/serve/index.ts'
import { startProxy, type Proxy } from './proxy.ts'

const QUICK = { minMs: 5, maxMs: 40 }
const numbers = (to: number): number[] => Array.from({ length: to }, (_, n) => n + 1)

let server: Awaited<ReturnType<typeof serve>>
let proxy: Proxy
let clients: Client[]
beforeAll(async () => {
  server = await serve(demo(), { port: 0, data: 'memory' })
})
afterAll(() => server.close({ graceMs: 0 }))
beforeEach(async () => {
  proxy = await startProxy(server.port)
  clients = []
})
afterEach(async () => {
  for (const client of clients) client.close()
  await proxy.close()
})

function client(options: ConnectOptions): Client {
  const made = connect(proxy.url, { reconnect: QUICK, ...options })
  clients.push(made)
  return made
}

/** Resolves when the status is reached next. */
function statuses() {
  const seen: Status[] = []
  let wake: () => void = () => undefined
  return {
    seen,
    onStatus: (status: Status) => {
      seen.push(status)
      wake()
    },
    reached: async (status: Status): Promise<void> => {
      const from = seen.length
      while (!seen.slice(from).includes(status)) await new Promise<void>((resolve) => (wake = resolve))
    },
  }
}

for (const transport of ['websocket', 'sse'] as const) {
  describe(`over ${transport}`, () => {
    test('a stream that is cut ten times arrives whole, once and in order', async () => {
      const session = await client({ transport }).session()
      const total = 3000
      const cuts = new Set(Array.from({ length: 10 }, () => 1 + Math.floor(Math.random() * (total - 1))))
      const got: number[] = []
      for await (const event of session.ask(`/count ${total} 1`)) {
        if (event.type !== 'response.delta' || event.delta.type !== 'text') continue
        got.push(Number(event.delta.text))
        if (cuts.has(got.length)) proxy.cut()
      }
      expect(got).toEqual(numbers(total))
      expect(proxy.accepted).toBeGreaterThan(1)
    })

    test('a long absence is caught up with', async () => {
      const { onStatus, reached } = statuses()
      const session = await client({ transport, onStatus, reconnect: { ...QUICK, attempts: 1000 } }).session()
      const watcher = connect(server.url)
      clients.push(watcher)
      const watched = await watcher.session({ resume: { session_id: session.id, after: 0 } })
      const got: number[] = []
      const loop = (async () => {
        for await (const event of session.ask('/count 4000')) {
          if (event.type === 'response.delta' && event.delta.type === 'text') got.push(Number(event.delta.text))
        }
      })()
      const away = reached('reconnecting')
      proxy.door = 'shut'
      for await (const event of watched) {
        if (event.type === 'response.created') proxy.cut()
        if (event.type === 'response.done') break
      }
      await away
      proxy.door = 'open'
      await loop
      expect(got).toEqual(numbers(4000))
    })

    test('what the network lost on the way to the server is sent again', async () => {
      const session = await client({ transport }).session()
      await session.say('hello')
      proxy.upstream = 'lose'
      const sent = session.send({ type: 'input.text', text: 'lost once' })
      proxy.cut()
      proxy.upstream = 'pass'
      await sent
      expect(await session.say('/history')).toContain('lost once')
    })

    test('what the server has, but whose acknowledgement was lost, is not taken twice', async () => {
      const session = await client({ transport }).session()
      const watcher = connect(server.url)
      clients.push(watcher)
      const watched = await watcher.session({ resume: session.position })
      proxy.downstream = 'lose'
      const answer = session.say('/count 5')
      // The server has it: somebody else sees the answer.
      for await (const event of watched) if (event.type === 'response.done') break
      proxy.cut()
      proxy.downstream = 'pass'
      expect(await answer).toBe('1 2 3 4 5')
      const history = await session.say('/history')
      expect(history.match(/\/count 5/g)).toHaveLength(1)
    })

    test('a connection that is silently dead is noticed', async () => {
      const { onStatus, reached } = statuses()
      const session = await client({ transport, onStatus, reconnect: { ...QUICK, idleMs: 100 } }).session()
      await session.say('hello')
      const lost = reached('reconnecting')
      proxy.upstream = proxy.downstream = 'lose'
      await lost
      proxy.upstream = proxy.downstream = 'pass'
      expect(await session.say('again')).toBe('You said: again')
    })

    test('an event on its way when the network dies silently gets there later', async () => {
      const session = await client({ transport, reconnect: { ...QUICK, idleMs: 100 } }).session()
      proxy.upstream = 'lose'
      const sent = session.send({ type: 'input.text', text: 'into the void' })
      await proxy.nextConnection()
      proxy.upstream = 'pass'
      proxy.cut()
      await sent
      expect(await session.say('/history')).toContain('into the void')
    })

    test('an event that is too large is refused, and the session goes on', async () => {
      const session = await client({ transport }).session()
      const sent = [
        session.send({ type: 'input.text', text: 'before' }),
        session.send({ type: 'input.text', text: 'x'.repeat(5 * 1024 * 1024) }),
        session.send({ type: 'input.text', text: 'after' }),
      ]
      const results = await Promise.allSettled(sent)
      expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
      expect(results[1]).toMatchObject({ reason: { code: 'too_large' } })
      const history = await session.say('/history')
      expect(history).toContain('before')
      expect(history).toContain('after')
    })

    test('the server is started anew in mid-answer', async () => {
      const data = await mkdtemp(join(tmpdir(), 'uamp-client-'))
      const first = await serve(demo(), { port: 0, data })
      const it = connect(first.url, { transport, reconnect: { ...QUICK, attempts: 1000 } })
      clients.push(it)
      const session = await it.session()
      await session.say('remember me')
      const answer = session.ask('/count 1000000 1')
      while ((await answer.next()).value?.type !== 'response.delta');
      await first.close({ graceMs: 0 })
      const second = await serve(demo(), { port: first.port, data })
      const rest = (async () => {
        while (!(await answer.next()).done);
      })()
      await expect(rest).rejects.toMatchObject({ code: 'interrupted' })
      expect(await session.say('/history')).toContain('remember me')
      it.close()
      await second.close({ graceMs: 0 })
      await rm(data, { recursive: true })
    })

    test('gives up in the end, tells everybody, and the session can be resumed elsewhere', async () => {
      const { onStatus, seen } = statuses()
      const session = await client({ transport, onStatus, reconnect: { ...QUICK, attempts: 3 } }).session()
      await session.say('remember me')
      const loop = (async () => {
        for await (const _ of session);
      })()
      proxy.door = 'shut'
      proxy.cut()
      await expect(loop).rejects.toMatchObject({ code: 'unreachable' })
      await expect(session.say('anybody?')).rejects.toMatchObject({ code: 'unreachable' })
      expect(seen).toEqual(['connecting', 'open', 'reconnecting', 'closed'])
      const other = connect(server.url, { transport })
      clients.push(other)
      const again = await other.session({ resume: session.position })
      expect(await again.say('/history')).toContain('remember me')
    })

    test('reconnect: false gives up at once', async () => {
      const session = await client({ transport, reconnect: false }).session()
      const answer = session.say('/count 1000000 1')
      for await (const { type } of session) if (type === 'response.delta') break
      proxy.cut()
      await expect(answer).rejects.toMatchObject({ code: 'unreachable' })
    })

    test('the client can be used again after it gave up', async () => {
      const it = client({ transport, reconnect: false })
      proxy.door = 'shut'
      await expect(it.session()).rejects.toMatchObject({ code: 'unreachable' })
      proxy.door = 'open'
      const session = await it.session()
      expect(await session.say('now')).toBe('You said: now')
    })
  })
}

test('many sessions on one socket are all taken up again', async () => {
  const it = client({ transport: 'websocket' })
  const answers = Array.from({ length: 20 }, async () => {
    const session = await it.session()
    const got: number[] = []
    for await (const event of session.ask('/count 300 1')) {
      if (event.type === 'response.delta' && event.delta.type === 'text') got.push(Number(event.delta.text))
      if (got.length % 97 === 0) proxy.cut()
    }
    return got
  })
  for (const got of await Promise.all(answers)) expect(got).toEqual(numbers(300))
})

test('a reader that does not read costs no more than its limit, and may resume from where it was cut', async () => {
  const it = client({ transport: 'websocket' })
  const session = await it.session()
  const slow = session[Symbol.asyncIterator]()
  const total = 30_000
  expect((await session.say(`/count ${total}`)).length).toBeGreaterThan(total)
  const got: number[] = []
  let resume: { session_id: string; after: number } | undefined
  const take = async (events: AsyncIterator<ServerEvent>): Promise<void> => {
    for (;;) {
      const { value, done } = await events.next()
      if (done || value.type === 'response.done') return
      if (value.type === 'response.delta' && value.delta.type === 'text') got.push(Number(value.delta.text))
    }
  }
  await expect(take(slow)).rejects.toSatisfy((error: { code: string; details: { session_id: string; after: number } }) => {
    resume = error.details
    return error.code === 'slow_consumer'
  })
  expect(got.length).toBeLessThan(total)
  const other = connect(server.url)
  clients.push(other)
  if (resume) await take((await other.session({ resume }))[Symbol.asyncIterator]())
  expect(got).toEqual(numbers(total))
})

test('over SSE a reader that does not read stops the stream, and loses nothing', async () => {
  const session = await client({ transport: 'sse' }).session()
  const quick = connect(server.url)
  clients.push(quick)
  const watched = await quick.session({ resume: session.position })
  const total = 30_000
  const slow = session.ask(`/count ${total}`)
  await slow.next()
  // By now there is more than the reader's queue may hold: what came was left in the network.
  for await (const { type } of watched) if (type === 'response.done') break
  const got: number[] = []
  for await (const event of slow) {
    if (event.type === 'response.delta' && event.delta.type === 'text') got.push(Number(event.delta.text))
  }
  expect(got).toEqual(numbers(total))
})
