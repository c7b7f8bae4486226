import { expect, test } from 'vitest'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { text } from '../../src/core/agent-kit/drafts.ts'
import { TOKEN_REVOKED } from '../../src/core/basics/principal.ts'
import { createWebApp } from '../../src/serve/web.ts'
import { Live } from '../../src/server/live.ts'
import { a2a } from '../../src/transports/a2a/index.ts'
import { acp } from '../../src/transports/acp/index.ts'
import { agUi } from '../../src/transports/ag-ui/index.ts'
import { completions } from '../../src/transports/completions/index.ts'
import { events } from '../../src/transports/events/index.ts'
import { omnia } from '../../src/transports/omnia/index.ts'
import { realtime } from '../../src/transports/realtime/index.ts'
import { responses } from '../../src/transports/responses/index.ts'
import { message } from '../a2a/push-support.ts'
import { testServer } from '../support/test-server.ts'
import { verifies } from '../support/verifies.ts'
import { TimedAccess } from './timed-access.ts'

/** Says a word, and then nothing for as long as it may. */
const quiet = defineAgent('quiet', async function* ({ signal }) {
  yield text('one')
  await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
})

async function start() {
  const access = new TimedAccess()
  const live = new Live({ graceSeconds: access.graceSeconds })
  const transports = [
    events(),
    completions(),
    responses(),
    realtime(),
    a2a(),
    agUi(),
    acp({ connectTools: () => Promise.reject(new Error('none')), version: '1' }),
    omnia(),
  ]
  return { ...(await testServer({ agents: [quiet], transports, access, live })), access, live }
}

const SOCKETS = ['/v1/realtime', '/acp', '/acp/stream', '/omnia', '/v1/responses', '/uamp', '/ws']

verifies(
  ['identity:time:sockets', 'identity:time:never'],
  'every socket is closed with 4401 when its token is over, and stays open with one that never is',
  async () => {
    const { access, connect } = await start()
    const open = (path: string, token: string) => connect(path, { headers: { authorization: `Bearer ${token}` } })
    const lasting = await Promise.all(
      SOCKETS.map((path) => new Promise<WebSocketLike>((resolve) => opened(open(path, access.give('bob')), resolve))),
    )
    const closed = SOCKETS.map(
      (path) =>
        new Promise((resolve) =>
          open(path, access.give('alice', { expiresIn: 1 })).once('close', (code, reason) => resolve([path, code, reason.toString()])),
        ),
    )
    expect(await Promise.all(closed)).toEqual(SOCKETS.map((path) => [path, 4401, 'token_expired']))
    expect(lasting.map(({ readyState }) => readyState)).toEqual(SOCKETS.map(() => 1))
  },
)

type WebSocketLike = ReturnType<Awaited<ReturnType<typeof testServer>>['connect']>
const opened = (socket: WebSocketLike, then: (socket: WebSocketLike) => void) => socket.once('open', () => then(socket))

verifies('identity:time:revoked', 'a revocation closes every socket of its principal at once, and no other', async () => {
  const { access, connect, live } = await start()
  const open = (path: string, id: string) =>
    new Promise<WebSocketLike>((resolve) => opened(connect(path, { headers: { authorization: `Bearer ${access.give(id)}` } }), resolve))
  const [mine, others] = await Promise.all(['alice', 'bob'].map((id) => Promise.all(SOCKETS.map((path) => open(path, id)))))
  const codes = mine?.map((socket) => new Promise((resolve) => socket.once('close', (code, reason) => resolve([code, reason.toString()]))))
  expect(live.cut(({ id }) => id === 'alice', TOKEN_REVOKED)).toBe(SOCKETS.length)
  expect(await Promise.all(codes ?? [])).toEqual(SOCKETS.map(() => [4401, TOKEN_REVOKED]))
  expect(others?.map(({ readyState }) => readyState)).toEqual(SOCKETS.map(() => 1))
})

const HELLO = { messages: [{ role: 'user', content: 'Hello' }] }
const STREAMS: readonly { readonly path: string; readonly body: object; readonly headers?: object; readonly end: RegExp }[] = [
  { path: '/v1/chat/completions', body: { model: 'quiet', stream: true, ...HELLO }, end: /"code":"token_expired".*\[DONE\]\s*$/s },
  { path: '/v1/responses', body: { model: 'quiet', stream: true, input: 'Hello' }, end: /event: error\n.*token has expired/s },
  {
    path: '/ag-ui',
    body: { threadId: 't', runId: 'r', messages: [{ id: 'm', role: 'user', content: 'Hello' }] },
    end: /"type":"RUN_ERROR".*token has expired/s,
  },
  {
    path: '/a2a',
    body: { jsonrpc: '2.0', id: 1, method: 'SendStreamingMessage', params: { message: message() } },
    headers: { 'a2a-version': '1.0' },
    end: /"error":\{.*token has expired/s,
  },
  {
    path: '/events',
    body: [{ type: 'session.create' }, { type: 'input.text', text: 'Hello' }, { type: 'response.create' }],
    headers: { accept: 'text/event-stream' },
    end: /"type":"session.end"[^\n]*"reason":"token_expired"/,
  },
  {
    path: '/acp',
    body: { jsonrpc: '2.0', id: 1, method: 'prompt/submit', params: HELLO },
    headers: { accept: 'text/event-stream' },
    end: /"error":\{.*token has expired/s,
  },
]

const posted = ({ body, headers }: (typeof STREAMS)[number], token: string): RequestInit => ({
  method: 'POST',
  headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...headers },
  body: JSON.stringify(body),
})

verifies('identity:time:streams', 'every streamed answer ends with the error of its protocol', async () => {
  const { url, access, live } = await start()
  for (const stream of STREAMS) {
    const answer = await fetch(url + stream.path, posted(stream, access.give('alice', { expiresIn: 1 })))
    expect(answer.status, stream.path).toBe(200)
    expect(await answer.text(), stream.path).toMatch(stream.end)
  }
  // Nothing is kept of what has ended.
  await expect.poll(() => live.size).toBe(0)
})

verifies('identity:time:streams', 'so it does on a runtime that only has web streams', async () => {
  const access = new TimedAccess()
  const app = createWebApp(quiet, { access, log: () => undefined })
  for (const stream of STREAMS.filter(({ path }) => path !== '/acp')) {
    const request = new Request(`http://localhost${stream.path}`, posted(stream, access.give('alice', { expiresIn: 1 })))
    expect(await (await app.fetch(request)).text(), stream.path).toMatch(stream.end)
  }
  await app.close({ graceMs: 0 })
})

test('a use that is taken off the list is not cut, and one that is added again is told anew', async () => {
  const live = new Live({ graceSeconds: 60 })
  const [told, cut]: [number[], string[]] = [[], []]
  const principal = { tenant: 't', id: 'a', scopes: [], expiresAt: Date.now() - 1 }
  const use = { principal: () => principal, expired: (grace: number) => told.push(grace), cut: (reason: string) => cut.push(reason) }
  live.add(use)
  const remove = live.add(use)
  expect(live.size).toBe(1)
  await expect.poll(() => told).toEqual([60])
  remove()
  expect(live.cut(() => true, TOKEN_REVOKED)).toBe(0)
  expect(cut).toEqual([])
})
