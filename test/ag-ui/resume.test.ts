import { expect } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { text } from '../../src/core/agent-kit/drafts.ts'
import { sseParser } from '../../src/wire/sse-parse.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'
import { everything } from './agents.ts'
import { heard, post, refusal, replay, run, user } from './wire.ts'

verifies('ag-ui.resume', 'a run is told again as it was, from its beginning or from after any of its events', async () => {
  const { url } = await startServer([everything, demo()])
  for (const agent of ['everything', 'demo']) {
    for (const protocolVersion of ['1.0', undefined]) {
      const at = `${url}/agents/${agent}`
      const runId = crypto.randomUUID()
      const whole = await run(at, '/tool add {"a":1,"b":2}', { input: { runId, protocolVersion } })
      expect((await replay(at, runId)).text).toBe(whole.text)
      for (const [index, id] of whole.ids.entries()) {
        const rest = await replay(at, runId, { 'last-event-id': id })
        expect(rest.events, `after ${id}`).toEqual(whole.events.slice(index + 1))
      }
    }
  }
})

verifies(['ag-ui.resume', 'ag-ui.snapshot'], 'a run that joined is told again with what it was told then', async () => {
  const { url } = await startServer(demo())
  await run(url, [user('u1', 'one')], { input: { threadId: 't' } })
  const whole = await run(url, [user('u2', 'two')], { input: { threadId: 't', runId: 'joined' } })
  expect((await replay(url, 'joined')).text).toBe(whole.text)
  for (const [index, id] of whole.ids.entries()) {
    const rest = await replay(url, 'joined', { 'last-event-id': id })
    expect(rest.events, `after ${id}`).toEqual(whole.events.slice(index + 1))
  }
})

verifies('ag-ui.resume', 'the runs of a thread are told apart', async () => {
  const { url } = await startServer(demo())
  const first = await run(url, [user('u1', 'one')], { input: { threadId: 't', runId: 'r 1' } })
  const second = await run(url, [user('u2', 'two')], { input: { threadId: 't', runId: 'r/2' } })
  expect((await replay(url, 'r 1')).said).toBe(first.said)
  expect((await replay(url, 'r/2')).said).toBe(second.said)
})

verifies('ag-ui.resume', 'of two runs of one id the newer is found, and its events are not told as the rest of the older', async () => {
  const { url } = await startServer(demo())
  const [first, second] = [[user('u1', 'one')], [user('u2', 'two')]]
  const older = await run(url, first, { input: { threadId: 'a', runId: '1' } })
  const newer = await run(url, second, { input: { threadId: 'b', runId: '1' } })
  expect((await replay(url, '1')).text).toBe(newer.text)
  expect((await replay(url, '1', { 'last-event-id': newer.ids[1] as string })).events).toEqual(newer.events.slice(2))
  for (const id of older.ids) expect(await refused(url, id)).toMatchObject({ status: 400, code: 'invalid_request' })
})

verifies('ag-ui.resume', 'nobody goes on from an event that was not told', async () => {
  let release: () => void = () => undefined
  const released = new Promise<void>((resolve) => (release = resolve))
  const agent = defineAgent('patient', async function* () {
    yield text('before ')
    await released
    yield text('after')
  })
  const { url, gateway } = await startServer(agent)
  const response = await post(url, 'go', { input: { threadId: 't', runId: '1' } })
  const id = await until(response, 'before ')
  const later = (from: string, by: number): string => from.replace(/^\d+/, (seq) => String(Number(seq) + by))
  for (const wrong of [later(id, 1), later(id, 999_999), later(id, -Number.parseInt(id, 10)), '999999', '2', '-1', 'x']) {
    expect(await refused(url, wrong), wrong).toMatchObject({ status: 400, message: expect.stringContaining('of this run') as string })
  }
  const rest = replay(url, '1', { 'last-event-id': id })
  release()
  const { said, ids } = await rest
  expect(said).toBe('after')
  const end = ids.at(-1) as string
  expect((await replay(url, '1', { 'last-event-id': end })).events).toEqual([])
  // What came later in the thread is of another run.
  await run(url, [user('u2', 'more')], { input: { threadId: 't', runId: '2' } })
  expect(await refused(url, later(end, 1))).toMatchObject({ status: 400 })
  await expect.poll(() => gateway.openSessions).toBe(0)
})

/** How run 1 is refused to who has that event, by the header and by the query. */
async function refused(url: string, id: string) {
  const answers = [
    fetch(`${url}/ag-ui/runs/1`, { headers: { 'last-event-id': id } }),
    fetch(`${url}/ag-ui/runs/1?after=${encodeURIComponent(id)}`),
  ]
  const [byHeader, byQuery] = await Promise.all(answers.map(async (answer) => refusal(await answer)))
  expect(byHeader).toEqual(byQuery)
  return byHeader
}

verifies(['ag-ui.resume', 'ag-ui.cancel'], 'a client that asked to detach finds its run going on', async () => {
  let release: () => void = () => undefined
  const released = new Promise<void>((resolve) => (release = resolve))
  const agent = defineAgent('patient', async function* ({ signal }) {
    yield text('before ')
    await released
    signal.throwIfAborted()
    yield text('after')
  })
  const { url } = await startServer(agent)
  const leaving = new AbortController()
  const input = { runId: 'r', forwardedProps: { uamp: { detach: true } } }
  const response = await post(url, 'go', { input, signal: leaving.signal })
  const first = await until(response, 'before ')
  leaving.abort()
  const rest = fetch(`${url}/ag-ui/runs/r`, { headers: { 'last-event-id': first } })
  const back = await rest
  release()
  const { said, types } = heard(await back.text())
  expect(said).toBe('after')
  expect(types).toEqual(['TEXT_MESSAGE_CONTENT', 'TEXT_MESSAGE_END', 'RUN_FINISHED'])
  expect((await replay(url, 'r')).said).toBe('before after')
})

verifies('ag-ui.cancel', 'a client that leaves stops the agent, and its run says so', async () => {
  let stopped: () => void = () => undefined
  const stop = new Promise<void>((resolve) => (stopped = resolve))
  const agent = defineAgent('endless', async function* () {
    try {
      for (let n = 0; ; n++) {
        yield text(`${n} `)
        await new Promise((resolve) => setTimeout(resolve, 5))
      }
    } finally {
      stopped()
    }
  })
  const { url } = await startServer(agent)
  const leaving = new AbortController()
  const response = await post(url, 'go', { input: { runId: 'r' }, signal: leaving.signal })
  await until(response, '1 ')
  leaving.abort()
  await stop
  expect((await replay(url, 'r')).end).toMatchObject({ type: 'RUN_FINISHED', outcome: { type: 'cancelled' } })
})

verifies('ag-ui.cancel', 'a client that leaves before the first word stops the agent too', async () => {
  let begun: () => void = () => undefined
  let stopped: () => void = () => undefined
  const begin = new Promise<void>((resolve) => (begun = resolve))
  const stop = new Promise<void>((resolve) => (stopped = resolve))
  const agent = defineAgent('silent', async function* ({ signal }) {
    signal.addEventListener('abort', () => stopped(), { once: true })
    begun()
    await stop
    yield text('too late')
  })
  const { url } = await startServer(agent)
  const leaving = new AbortController()
  const response = post(url, 'go', { input: { runId: 'r' }, signal: leaving.signal })
  await begin
  leaving.abort()
  await expect(response).rejects.toThrow()
  await stop
  expect((await replay(url, 'r')).types).toEqual(['RUN_STARTED', 'RUN_FINISHED'])
})

verifies('ag-ui.resume', 'who only looks on may leave', async () => {
  const { url } = await startServer(demo())
  const response = await post(url, '/count 40 20', { input: { runId: 'r' } })
  const leaving = new AbortController()
  const onlooker = await fetch(`${url}/ag-ui/runs/r`, { signal: leaving.signal })
  await until(onlooker, ' 3')
  leaving.abort()
  expect(heard(await response.text()).end).toMatchObject({ type: 'RUN_FINISHED', outcome: { type: 'success' } })
})

verifies('ag-ui.resume', 'a run of another, of another agent or of nobody is not found', async () => {
  const { url } = await startServer([demo(), everything], { tokens: { a: 'one-0123456789abcdef', b: 'two-0123456789abcdef' } })
  const as = (token: string) => ({ authorization: `Bearer ${token}` })
  await run(`${url}/agents/demo`, 'Hello', { input: { runId: 'r' }, headers: as('one-0123456789abcdef') })
  const get = async (path: string, token: string, headers = {}) => {
    return refusal(await fetch(`${url}${path}`, { headers: { ...as(token), ...headers } }))
  }
  expect(await get('/ag-ui/runs/r', 'two-0123456789abcdef')).toMatchObject({ status: 404, code: 'not_found' })
  expect(await get('/agents/everything/ag-ui/runs/r', 'one-0123456789abcdef')).toMatchObject({ status: 404 })
  expect(await get('/ag-ui/runs/none', 'one-0123456789abcdef')).toMatchObject({ status: 404 })
  expect(await get('/ag-ui/runs/r', 'one-0123456789abcdef', { 'last-event-id': 'x' })).toMatchObject({ status: 400 })
  expect((await replay(`${url}/agents/demo`, 'r', as('one-0123456789abcdef'))).said).toBe('You said: Hello')
})

/** Reads until something was said, and gives the id of that event. */
async function until(response: Response, said: string): Promise<string> {
  const parse = sseParser()
  const decoder = new TextDecoder()
  const reader = response.body?.getReader()
  for (;;) {
    const step = await reader?.read()
    if (!step || step.done) throw new Error('It ended before')
    for (const { data, id } of parse(decoder.decode(step.value, { stream: true }))) {
      if ((JSON.parse(data) as { delta?: unknown }).delta === said) return id as string
    }
  }
}
