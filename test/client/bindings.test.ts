import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { connect, type Client, type ServerEvent } from '../../src/client/node.ts'
import { serve } from '../../src/serve/index.ts'
import { startProxy } from './proxy.ts'

let server: Awaited<ReturnType<typeof serve>>
beforeAll(async () => {
  server = await serve(demo(), { port: 0, data: 'memory' })
})
afterAll(() => server.close({ graceMs: 0 }))

/** Takes events until one fits. */
async function until(events: AsyncIterator<ServerEvent>, fits: (event: ServerEvent) => boolean): Promise<ServerEvent[]> {
  const seen: ServerEvent[] = []
  for (;;) {
    const { value, done } = await events.next()
    if (done) throw new Error(`ended after ${seen.map(({ type }) => type).join(', ')}`)
    seen.push(value)
    if (fits(value)) return seen
  }
}

const texts = (events: readonly ServerEvent[]): string =>
  events.map((event) => (event.type === 'response.delta' && event.delta.type === 'text' ? event.delta.text : '')).join('')

const count = (to: number): string => Array.from({ length: to }, (_, n) => n + 1).join(' ')

for (const transport of ['websocket', 'sse'] as const) {
  describe(`over ${transport}`, () => {
    let client: Client
    beforeAll(() => {
      client = connect(server.url, { transport })
    })
    afterAll(() => client.close())

    test('a streamed answer, event by event', async () => {
      const session = await client.session()
      const types: string[] = []
      let text = ''
      for await (const event of session.ask('Hello there')) {
        types.push(event.type)
        if (event.type === 'response.delta' && event.delta.type === 'text') text += event.delta.text
      }
      expect(text).toBe('You said: Hello there')
      expect([types[0], types.at(-1)]).toEqual(['response.created', 'response.done'])
      expect(types.filter((type) => type === 'response.delta').length).toBeGreaterThan(1)
      expect(client.status).toBe('open')
    })

    test('two who talk in one session get each their own answers', async () => {
      const one = await client.session()
      const other = connect(server.url, { transport })
      try {
        const two = await other.session({ resume: one.position })
        for (let round = 0; round < 5; round++) {
          expect(await one.say(`one ${round}`)).toBe(`You said: one ${round}`)
          expect(await two.say(`two ${round}`)).toBe(`You said: two ${round}`)
        }
      } finally {
        other.close()
      }
    })

    test('the session iterated gives every event from its beginning', async () => {
      const session = await client.session()
      const events = session[Symbol.asyncIterator]()
      void session.say('/count 3')
      const seen = await until(events, ({ type }) => type === 'response.done')
      const logged = seen.filter(({ type }) => type !== 'rate_limit')
      expect(logged.map(({ type }) => type).slice(0, 3)).toEqual(['session.created', 'capabilities', 'response.created'])
      expect(seen.every(({ session_id }) => session_id === session.id)).toBe(true)
      expect(session.position).toEqual({ session_id: session.id, after: seen.at(-1)?.seq })
    })

    test('one question after the other, the conversation is kept', async () => {
      const session = await client.session()
      await session.say('first')
      await session.say('second')
      const history = await session.say('/history')
      expect(history).toContain('first')
      expect(history).toContain('second')
    })

    test('tools are functions of the client', async () => {
      const session = await client.session({
        tools: {
          get_weather: {
            description: 'The weather of a city',
            parameters: { type: 'object', properties: { city: { type: 'string' } } },
            run: async ({ city }: { city: string }) => ({ city, sky: 'clear' }),
          },
          broken: {
            run: () => {
              throw new Error('out of order')
            },
          },
        },
      })
      expect(await session.say('/tool get_weather {"city":"Brno"}')).toContain('clear')
      expect(await session.say('/tool broken {}')).toContain('out of order')
    })

    test('a tool without a function is answered by hand', async () => {
      const session = await client.session({ tools: { ask_me: { description: 'asks the user' } } })
      const answer = session.ask('/tool ask_me {}')
      let text = ''
      for await (const event of answer) {
        if (event.type === 'tool.call') await session.send({ type: 'tool.result', call_id: event.call_id, result: '"by hand"' })
        if (event.type === 'response.delta' && event.delta.type === 'text') text += event.delta.text
      }
      expect(text).toContain('by hand')
    })

    test('approvals are decided by the application', async () => {
      const asked: string[] = []
      const session = await client.session({
        onApproval: async ({ message }) => {
          asked.push(message)
          return message === 'launch'
        },
      })
      expect(await session.say('/approve launch')).toBe('Approved: launch')
      expect(await session.say('/approve land')).toBe('Denied: land')
      expect(asked).toEqual(['launch', 'land'])
    })

    test('a failing response throws its code, and the session goes on', async () => {
      const session = await client.session()
      await expect(session.say('/error provider_error')).rejects.toMatchObject({ name: 'UampClientError', code: 'provider_error' })
      expect(await session.say('again')).toBe('You said: again')
    })

    test('aborting stops the response; the next question is answered', async () => {
      const session = await client.session()
      const events = session[Symbol.asyncIterator]()
      const stop = new AbortController()
      const loop = (async () => {
        for await (const event of session.ask('/count 1000000 1', { signal: stop.signal })) {
          if (event.type === 'response.delta') stop.abort()
        }
      })()
      await expect(loop).rejects.toMatchObject({ name: 'AbortError' })
      expect(await session.say('still there?')).toBe('You said: still there?')
      const seen = await until(events, ({ type }) => type === 'response.done')
      expect(seen.filter(({ type }) => type === 'response.cancelled')).toHaveLength(1)
    })

    test('cancel() ends the answer with what there was of it', async () => {
      const session = await client.session()
      let last: ServerEvent | undefined
      let cancelled: Promise<void> | undefined
      for await (const event of session.ask('/count 1000000 1')) {
        if (event.type === 'response.delta') cancelled ??= session.cancel()
        last = event
      }
      await cancelled
      expect(last).toMatchObject({ type: 'response.cancelled' })
      await expect(session.cancel()).rejects.toMatchObject({ code: 'not_found' })
    })

    test('several inputs are one message', async () => {
      const session = await client.session()
      const answer = await session.say([
        { type: 'input.text', text: 'look at this ' },
        { type: 'input.image', image: { url: 'https://example.com/a.png' } },
      ])
      expect(answer).toContain('look at this')
    })

    test('send resolves when the event is durable, and rejects when it is refused', async () => {
      const session = await client.session()
      await session.send({ type: 'input.text', text: 'kept for later' })
      await expect(session.send({ type: 'tool.result', call_id: 'nobody', result: '1' })).rejects.toMatchObject({ code: 'not_found' })
      expect(await session.say('/history')).toContain('kept for later')
    })

    test('end() ends it: loops end, and it cannot be resumed', async () => {
      const session = await client.session()
      await session.say('hello')
      const { position } = session
      await session.end('done')
      await expect(session.say('too late')).rejects.toMatchObject({ code: 'closed' })
      const resumed = client.session({ resume: position })
      await expect(resumed).rejects.toMatchObject({ code: 'not_found' })
    })

    test('who resumes and asks at once gets the answer to that, not one of the replay', async () => {
      const session = await client.session()
      for (let n = 1; n <= 3; n++) await session.say(`old ${n}`)
      const other = connect(server.url, { transport })
      const again = await other.session({ resume: { session_id: session.id, after: 0 } })
      expect(await again.say('new')).toBe('You said: new')
      other.close()
    })

    test('a session can be resumed by another client, from any place', async () => {
      const session = await client.session()
      const asked = await session.say('/count 20')
      const other = connect(server.url, { transport })
      const again = await other.session({ resume: { session_id: session.id, after: 0 } })
      const replayed = await until(again[Symbol.asyncIterator](), ({ type }) => type === 'response.done')
      expect(texts(replayed)).toBe(asked)
      const logged = replayed.filter(({ type }) => type !== 'rate_limit')
      expect(logged.map(({ seq }) => seq)).toEqual(logged.map((_, n) => n + 1))
      expect(await again.say('go on')).toBe('You said: go on')
      other.close()
    })

    test('a session that is not there is not found', async () => {
      await expect(client.session({ resume: { session_id: 'sess_nobody', after: 3 } })).rejects.toMatchObject({ code: 'not_found' })
      await expect(client.session({ agent: 'nobody' })).rejects.toMatchObject({
        code: expect.stringMatching(/not_found|agent_offline/) as string,
      })
    })

    test('opening can be given up', async () => {
      await expect(client.session({ signal: AbortSignal.abort() })).rejects.toMatchObject({ name: 'AbortError' })
    })

    test('a closed client opens nothing, and what waited is told', async () => {
      const other = connect(server.url, { transport })
      const session = await other.session()
      const answer = session.say('/count 1000000 1')
      await until(session[Symbol.asyncIterator](), ({ type }) => type === 'response.delta')
      other.close()
      await expect(answer).rejects.toMatchObject({ code: 'closed' })
      await expect(other.session()).rejects.toMatchObject({ code: 'closed' })
      expect(other.status).toBe('closed')
    })
  })
}

test('many sessions share one socket, and none sees another', async () => {
  const proxy = await startProxy(server.port)
  const client = connect(proxy.url, { transport: 'websocket' })
  const words = Array.from({ length: 60 }, (_, n) => `word-${n}`)
  const histories = await Promise.all(
    words.map(async (word) => {
      const session = await client.session({ tools: { echo: { run: ({ word }: { word: string }) => word } } })
      await session.say(word)
      expect(await session.say(`/tool echo {"word":"${word}"}`)).toContain(word)
      expect(await session.say('/count 50')).toBe(count(50))
      return session.say('/history')
    }),
  )
  for (const [n, history] of histories.entries()) {
    expect(words.filter((word) => new RegExp(`${word}\\b`).test(history))).toEqual([words[n]])
  }
  expect(proxy.accepted).toBe(1)
  client.close()
  await proxy.close()
})

test('two clients on different bindings follow one session', async () => {
  const [one, two] = [connect(server.url, { transport: 'websocket' }), connect(server.url, { transport: 'sse' })]
  const session = await one.session()
  const follower = await two.session({ resume: { session_id: session.id, after: 0 } })
  const events = follower[Symbol.asyncIterator]()
  const said = session.say('/count 300')
  const seen = await until(events, ({ type }) => type === 'response.done')
  expect(texts(seen)).toBe(await said)

  const first = session[Symbol.asyncIterator]()
  await follower.say('from the other side')
  expect(texts(await until(first, (event) => event.type === 'response.done' && event.seq === follower.position.after))).toContain(
    'You said: from the other side',
  )
  one.close()
  two.close()
})
