import { expect, test } from 'vitest'
import { demo } from '../src/agents/demo/index.ts'
import { defineAgent } from '../src/core/agent-kit/define-agent.ts'
import { text } from '../src/core/agent-kit/drafts.ts'
import { endless } from './support/agents.ts'
import { startServer } from './support/server.ts'
import { say, textOf } from './support/talk.ts'
import { verifies } from './support/verifies.ts'
import { overSse, overWebSocket, type Heard } from './support/wire.ts'

const post = (url: string, body: unknown, headers: Record<string, string> = {}) =>
  fetch(`${url}/events`, { method: 'POST', headers, body: typeof body === 'string' ? body : JSON.stringify(body) })

verifies(
  ['uamp:transport:http-post', 'uamp:transport:http-stream', 'uamp:transport:http-session-header'],
  'events go up by POST and come down as a stream',
  async () => {
    const { url } = await startServer(demo())
    const created = await post(url, { type: 'session.create', event_id: 'c1', uamp_version: '1.0' })
    expect(created.status).toBe(201)
    const id = created.headers.get('x-session-id') as string
    expect(await created.json()).toEqual({ session_id: id, accepted: ['c1'] })
    const sent = await post(url, { type: 'input.text', event_id: 'i1', text: 'hello' }, { 'x-session-id': id })
    expect([sent.status, await sent.json()]).toEqual([202, { session_id: id, accepted: ['i1'] }])
    await post(url, { type: 'response.create' }, { 'x-session-id': id })
    const leave = new AbortController()
    const stream = await fetch(`${url}/events/stream`, { headers: { 'x-session-id': id }, signal: leave.signal })
    expect(stream.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
    expect(stream.headers.get('x-session-id')).toBe(id)
    let text = ''
    for await (const bytes of stream.body as ReadableStream<Uint8Array>) {
      text += new TextDecoder().decode(bytes)
      if (text.includes('response.done')) break
    }
    expect(text).toMatch(/^id: 1\ndata: \{"type":"session.created"/)
    expect(text).toContain('You')
    leave.abort()
  },
)

verifies('uamp:transport:same-events', 'both bindings have the same events', async () => {
  const { url } = await startServer(demo())
  const types = async (connect: typeof overSse) => {
    const wire = await connect(url)
    await wire.open()
    await say(wire, '/think why')
    // These two are of the connection, not of the session.
    return wire.heard.filter(({ type }) => type !== 'x.ack' && type !== 'rate_limit').map(({ type }) => type)
  }
  expect(await types(overSse)).toEqual(await types(overWebSocket))
})

test('one POST can open a session, say something and stream the answer', async () => {
  const { url } = await startServer(demo())
  const response = await post(url, [{ type: 'session.create' }, { type: 'input.text', text: '/count 5' }, { type: 'response.create' }], {
    accept: 'text/event-stream',
  })
  const events = (await response.text())
    .split('\n')
    .filter((line) => line.startsWith('data: '))
    .map((line) => JSON.parse(line.slice(6)) as Heard)
  expect(textOf(events)).toBe('1 2 3 4 5')
  expect(events.at(-1)?.type).toBe('response.done')
})

test('a session that was opened so stops when its reader leaves', async () => {
  const { agent, stopped } = endless()
  const { url } = await startServer(agent)
  const session = { modalities: ['text'], extensions: { uamp: { on_detach: 'cancel' } } }
  const leave = new AbortController()
  const response = await fetch(`${url}/events`, {
    method: 'POST',
    headers: { accept: 'text/event-stream' },
    body: JSON.stringify([{ type: 'session.create', session }, { type: 'response.create' }]),
    signal: leave.signal,
  })
  await response.body?.getReader().read()
  leave.abort()
  await stopped
})

test('two streams follow one session; a GET may start at the head', async () => {
  const { url } = await startServer(demo())
  const first = await overSse(url)
  const id = await first.open()
  await say(first, 'one')
  const second = await overSse(url)
  const logged = ({ heard }: Pick<typeof second, 'heard'>) => heard.filter(({ type }) => type !== 'rate_limit')
  await second.follow(id, 0)
  await second.next('response.done')
  expect(logged(second)).toEqual(logged(first))
  await say(first, 'two')
  await second.next('response.done')
  expect(logged(second)).toEqual(logged(first))
  const head = await fetch(`${url}/events/stream?session_id=${id}&after=head`)
  expect(head.status).toBe(200)
  await head.body?.cancel()
})

const refusals: [what: string, body: unknown, headers: Record<string, string>, status: number, code: string][] = [
  ['not JSON', '{', {}, 400, 'invalid_request'],
  ['no object', '5', {}, 400, 'invalid_request'],
  ['no events', '[]', {}, 400, 'invalid_request'],
  ['no type', {}, {}, 400, 'invalid_request'],
  ['no session', { type: 'input.text', text: 'x' }, {}, 400, 'invalid_request'],
  ['unknown session', { type: 'input.text', text: 'x' }, { 'x-session-id': 'sess_none' }, 404, 'not_found'],
  ['unknown agent', { type: 'session.create', agent: 'nobody' }, {}, 404, 'agent_offline'],
  ['wrong version', { type: 'session.create', uamp_version: '9' }, {}, 400, 'version_mismatch'],
  ['too deep', '['.repeat(100_000) + ']'.repeat(100_000), {}, 400, 'invalid_request'],
]
test.each(refusals)('refuses %s with a clear error', async (_, body, headers, status, code) => {
  const { url } = await startServer(demo())
  const response = await post(url, body, headers)
  const { error } = (await response.json()) as { error: { code: string; message: string } }
  expect([response.status, error.code]).toEqual([status, code])
  expect(error.message.length).toBeGreaterThan(8)
})

test('the stream of an unknown session is not found, and of none a bad request', async () => {
  const { url } = await startServer(demo())
  expect((await fetch(`${url}/events/stream`, { headers: { 'x-session-id': 'sess_none' } })).status).toBe(404)
  expect((await fetch(`${url}/events/stream`)).status).toBe(400)
})

test('a POST stops at the first event that is refused, and harms nobody', async () => {
  const { url } = await startServer(demo(), { tokens: { alice: 'a-0123456789abcdef' } })
  const headers = { authorization: 'Bearer a-0123456789abcdef' }
  const id = (await post(url, { type: 'session.create' }, headers)).headers.get('x-session-id') as string
  const bodies = [
    [{ type: 'tool.result', call_id: 'x', result: '1' }, { type: 'session.create' }],
    [
      { type: 'tool.result', call_id: 'x', result: '1' },
      { type: 'session.update', token: 'wrong' },
    ],
    [{ type: 'response.cancel' }, { type: 'input.text', text: 'not taken' }, { type: 'response.create' }],
  ]
  for (const body of bodies) expect((await post(url, body, { ...headers, 'x-session-id': id })).status).toBe(404)
  const wire = await overSse(url, { token: 'a-0123456789abcdef' })
  await wire.follow(id, 0)
  expect(textOf(await say(wire, '/history'))).toBe('user: /history')
})

test('a ping needs no session', async () => {
  const { url } = await startServer(demo())
  expect(await (await post(url, { type: 'ping', event_id: 'p' })).json()).toEqual({
    accepted: ['p'],
    events: [{ type: 'pong', event_id: expect.any(String), timestamp: expect.any(Number) }],
  })
})

test('without a response.create there is nothing to stream', async () => {
  const { url } = await startServer(demo())
  const response = await post(url, { type: 'session.create' }, { accept: 'text/event-stream' })
  expect([response.status, response.headers.get('content-type')]).toEqual([201, 'application/json'])
})

test('events of unknown type are taken and named', async () => {
  const { url } = await startServer(demo())
  const response = await post(url, [{ type: 'session.create', event_id: 'c' }, { type: 'future.thing' }])
  expect(await response.json()).toMatchObject({ accepted: ['c'], ignored: ['future.thing'] })
  const alone = await post(url, { type: 'sesion.create' })
  expect([alone.status, await alone.json()]).toEqual([202, { accepted: [], ignored: ['sesion.create'] }])
  const first = await post(url, [{ type: 'sesion.create' }, { type: 'input.text', text: 'x' }])
  expect(await first.json()).toMatchObject({ error: { code: 'invalid_request', details: { ignored: ['sesion.create'] } } })
})

test('the schemas of all events are served', async () => {
  const { url } = await startServer(demo())
  const schemas = (await (await fetch(`${url}/schemas/events.json`)).json()) as { $defs: Record<string, unknown> }
  expect(Object.keys(schemas.$defs)).toEqual(expect.arrayContaining(['input.text', 'response.delta', 'x.ack', 'system.stop']))
})

test('what happens is counted', async () => {
  const { url } = await startServer(demo())
  const wire = await overWebSocket(url)
  await wire.open()
  await say(wire, '/count 20')
  await say(wire, '/error too_hot')
  await wire.send({ type: 'response.cancel' })
  const metrics = await (await fetch(`${url}/metrics`)).text()
  const value = (name: string): number => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(metrics)?.[1])
  expect(value('uamp_events_total\\{transport="events"\\}')).toBeGreaterThanOrEqual(24)
  expect(value('uamp_errors_total\\{transport="events",code="too_hot"\\}')).toBe(1)
  expect(value('uamp_errors_total\\{transport="events",code="not_found"\\}')).toBe(1)
  expect(value('uamp_open_sessions')).toBe(1)
  expect(value('uamp_first_delta_seconds_count\\{transport="events"\\}')).toBe(1)
})

test('a question for a client that says it understands it, and has not opened its stream yet, was answered with no', async () => {
  const asking = defineAgent('asking', async function* (turn) {
    const { approved } = await turn.ask('x.approval.request', { approval_id: 'a', message: 'May I?' })
    yield text(approved ? 'yes' : 'no')
  })
  const { url } = await startServer(asking)
  const client_capabilities = { id: 'me', provider: 'test', modalities: ['text'], extensions: { uamp: { events: ['x.approval.request'] } } }
  const created = await post(url, [
    { type: 'session.create', uamp_version: '1.0', session: { modalities: ['text'] }, client_capabilities },
    { type: 'input.text', text: 'go' },
    { type: 'response.create' },
  ])
  const id = created.headers.get('x-session-id') as string
  const wire = await overSse(url)
  await wire.follow(id, 0)
  await wire.next('x.approval.request')
  await post(url, { type: 'x.approval.response', approval_id: 'a', approved: true }, { 'x-session-id': id })
  await wire.next('response.done')
  expect(textOf(wire.heard)).toBe('yes')
})

test('a POST that resumes a session and asks streams its own answer, not those before it', async () => {
  const { url } = await startServer(demo())
  const ask = (text: string) => [{ type: 'input.text', text }, { type: 'response.create' }]
  const first = await post(url, [{ type: 'session.create' }, ...ask('/count 2')], { accept: 'text/event-stream' })
  const id = first.headers.get('x-session-id') as string
  await first.text()
  const resume = {
    type: 'session.create',
    session: { modalities: ['text'], extensions: { uamp: { resume: { session_id: id, after: 0 } } } },
  }
  const second = await (await post(url, [resume, ...ask('/count 3')], { accept: 'text/event-stream' })).text()
  expect(second.match(/"type":"response.done"/g)).toHaveLength(2)
})

verifies('uamp:response:rate-limit-early', 'each HTTP answer tells in its headers what is left', async () => {
  const { url } = await startServer(demo(), { limits: { requestBurst: 30, requestsPerSecond: 1 } })
  const post = (body: object, headers = {}) => fetch(`${url}/events`, { method: 'POST', headers, body: JSON.stringify(body) })
  const opened = await post({ type: 'session.create' })
  const { session_id: id } = await opened.json()
  const asked = [{ type: 'input.text', text: 'hi' }, { type: 'response.create' }]
  const answers = [
    opened,
    await post({ type: 'ping' }),
    await post(asked, { 'x-session-id': id, accept: 'text/event-stream' }),
    await fetch(`${url}/events/stream`, { headers: { 'x-session-id': id } }),
  ]
  const left = answers.map(({ headers }) => Number(headers.get('ratelimit-remaining')))
  // One is taken by each; a second that passes gives one back.
  expect(left[0]).toBe(29)
  expect(left[3]).toBeLessThan(29)
  for (const { headers } of answers) {
    expect(headers.get('ratelimit-limit')).toBe('30')
    expect(Number(headers.get('ratelimit-reset'))).toBeGreaterThan(0)
  }
  for (const { body } of answers.slice(2)) await body?.cancel()
})
