import { once } from 'node:events'
import { expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { startServer } from '../../../test/support/server.ts'
import { refusedUpgrade } from '../../../test/support/test-server.ts'
import { verifies } from '../../../test/support/verifies.ts'
import { parseSse } from '../../wire/sse-parse.ts'
import { Agent } from '../../agents/agent.ts'
import { UampError } from '../../protocol/errors.ts'
import type { Skill } from '../ports/skill.ts'
import { text } from './drafts.ts'
import { exchange } from './exchange.ts'
import { http, websocket } from './own-routes.ts'

interface Question {
  readonly q: string
}

const asked = (value: unknown) => [{ role: 'user' as const, content: (value as Question).q }]

/** A protocol of questions `{ q }` and pieces of an answer `{ a }`. */
const MINE: Skill = {
  name: 'mine',
  routes: ({ gateway }) => [
    http('/my-protocol', { method: 'post' }, async function* (body, call) {
      for await (const event of exchange(gateway, { call, messages: asked(body) })) {
        if (event.type === 'response.delta' && event.delta.type === 'text') yield `data: {"a":"${event.delta.text}"}\n\n`
      }
    }),
    websocket('/my-protocol/stream', async (ws, call) => {
      for await (const message of ws) {
        for await (const event of exchange(gateway, { call, messages: asked(message) })) {
          if (event.type === 'response.delta' && event.delta.type === 'text') await ws.send({ a: event.delta.text })
        }
      }
    }),
    http('/value', {}, async (body, { params, agent }) => ({ body: body ?? null, params, agent })),
    http('/nothing', { method: 'DELETE' }, async () => undefined),
    http('/teapot', {}, async () => new Response('short and stout', { status: 418 })),
    http('/refused', {}, async function* () {
      yield* [] as string[]
      throw new UampError('forbidden', 'Not you')
    }),
    websocket('/goodbye', async (ws) => ws.send({ a: 'goodbye' })),
  ],
}

function words(onEnd: () => void = () => undefined, endless = false): Agent {
  const agent = new Agent({
    name: 'words',
    handlers: [
      {
        name: 'speaker',
        subscribes: ['input.text'],
        async *process(event, { signal }) {
          try {
            for (const word of 'text' in event ? String(event.text).split(' ') : []) yield text(word)
            if (endless) await new Promise((resolve) => signal.addEventListener('abort', resolve))
          } finally {
            onEnd()
          }
        },
      },
    ],
  })
  agent.addSkill(MINE)
  return agent
}

const post = (url: string, body: string, headers: Record<string, string> = {}) => fetch(url, { method: 'POST', body, headers })
const TOKEN = 'wonderland-0123456789abcdef'

verifies('uamp-transports.http', 'what a generator of a skill yields is streamed as server-sent events, at both paths', async () => {
  const { url } = await startServer(words())
  for (const path of ['/my-protocol', '/agents/words/my-protocol']) {
    const response = await post(url + path, '{"q":"to be"}')
    expect(response.headers.get('content-type')).toContain('text/event-stream')
    expect(await response.text()).toBe('data: {"a":"to"}\n\ndata: {"a":"be"}\n\n')
  }
})

verifies('uamp-transports.websocket', 'a socket of a skill reads JSON and sends JSON, message after message', async () => {
  const { url } = await startServer(words())
  const socket = new WebSocket(`${url.replace('http', 'ws')}/agents/words/my-protocol/stream`)
  const heard: string[] = []
  socket.on('message', (data: Buffer) => heard.push(data.toString()))
  await once(socket, 'open')
  socket.send('{"q":"to be"}')
  await expect.poll(() => heard).toEqual(['{"a":"to"}', '{"a":"be"}'])
  socket.send('{"q":"or"}')
  await expect.poll(() => heard.at(-1)).toBe('{"a":"or"}')
  for (const wrong of ['{nonsense', Buffer.from('{"q":"x"}')]) {
    const other = new WebSocket(`${url.replace('http', 'ws')}/my-protocol/stream`)
    await once(other, 'open')
    other.send(wrong)
    const [code, reason] = (await once(other, 'close')) as [number, Buffer]
    expect([code, reason.toString()]).toEqual([1007, 'Messages must be JSON'])
  }
  expect(socket.readyState).toBe(WebSocket.OPEN)
  socket.terminate()
})

test('other answers: a value, nothing, a response, an error before the first text', async () => {
  const { url } = await startServer(words())
  expect(await (await fetch(`${url}/value`)).json()).toEqual({ body: null, params: {}, agent: 'words' })
  expect((await fetch(`${url}/value`, { method: 'HEAD' })).status).toBe(200)
  expect((await fetch(`${url}/nothing`, { method: 'DELETE' })).status).toBe(204)
  expect((await fetch(`${url}/teapot`)).status).toBe(418)
  expect((await fetch(`${url}/refused`)).status).toBe(403)
  expect((await fetch(`${url}/my-protocol`)).status).toBe(405)
  const socket = new WebSocket(`${url.replace('http', 'ws')}/goodbye`)
  expect((await once(socket, 'close'))[0]).toBe(1000)
})

test('a body that is not JSON, or too deep or too large, is refused before the handler sees it', async () => {
  const { url } = await startServer(words(), { limits: { bodyBytes: 100_000 } })
  for (const body of ['{nonsense', '['.repeat(10_000)]) {
    const response = await post(`${url}/my-protocol`, body)
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ error: { code: 'invalid_request', message: 'The body must be JSON' } })
  }
  expect((await post(`${url}/my-protocol`, `{"q":"${'x'.repeat(100_000)}"}`)).status).toBe(413)
})

verifies(
  ['uamp-transports.http', 'uamp-transports.websocket'],
  'strangers are refused, and requests counted, as on any route',
  async () => {
    const { url } = await startServer(words(), { tokens: { alice: TOKEN }, limits: { requestsPerSecond: 1, requestBurst: 2 } })
    const socketUrl = `${url.replace('http', 'ws')}/my-protocol/stream`
    expect((await post(`${url}/my-protocol`, '{"q":"x"}')).status).toBe(401)
    expect((await refusedUpgrade(new WebSocket(socketUrl))).status).toBe(401)
    const headers = { authorization: `Bearer ${TOKEN}` }
    const statuses = []
    for (let i = 0; i < 4; i++) statuses.push((await post(`${url}/my-protocol`, '{"q":"x"}', headers)).status)
    expect(statuses[0]).toBe(200)
    expect(statuses.at(-1)).toBe(429)
  },
)

test('a client that leaves stops the agent', async () => {
  let ended!: () => void
  const end = new Promise<void>((resolve) => (ended = resolve))
  const { url } = await startServer(words(ended, true))
  const leave = new AbortController()
  const response = await fetch(`${url}/my-protocol`, { method: 'POST', body: '{"q":"one"}', signal: leave.signal })
  if (response.body) for await (const { data } of parseSse(response.body)) if (data === '{"a":"one"}') break
  leave.abort()
  await end
})
