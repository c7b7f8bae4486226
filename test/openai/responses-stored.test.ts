import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { serve } from '../../src/serve/index.ts'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { text } from '../../src/core/agent-kit/drafts.ts'
import type { AgentPort } from '../../src/core/ports/agent.ts'
import { counter } from '../support/agents.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'
import { client, deltasOf, readEvents, textOf, type Json, type Told } from './responses-wire.ts'

const start = async (agents: AgentPort | readonly AgentPort[] = demo(), options: Parameters<typeof startServer>[1] = {}) => {
  const server = await startServer(agents, options)
  return { ...server, api: client(server.url) }
}

/** Says what it was told, and how. */
const echo = (): AgentPort =>
  defineAgent('echo', async function* ({ messages, config }) {
    yield text(`${config.instructions ?? '-'} ${messages.map(({ content }) => content).join('|')}`)
  })

/** Says little, whatever it is told. */
const short = (): AgentPort =>
  defineAgent('short', async function* () {
    yield text('ok')
  })

/** Says one word, then waits until it is told to go on. */
function patient() {
  const state = { ended: 0, go: (): void => undefined }
  const gate = new Promise<void>((resolve) => (state.go = resolve))
  const agent = defineAgent('patient', async function* ({ signal }) {
    try {
      yield text('begun')
      await Promise.race([gate, new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))])
      yield text(' done')
    } finally {
      state.ended++
    }
  })
  return { agent, state }
}

const counted = (last: number): string => Array.from({ length: last }, (_, n) => n + 1).join(' ')

verifies(
  ['openai-responses.previous', 'openai-responses.instructions'],
  'a conversation goes on, and forks from any response',
  async () => {
    const { api } = await start(echo())
    const ask = async (input: string, previous?: unknown, more: object = {}) =>
      (await api.ask({ input, ...more, ...(previous !== undefined && { previous_response_id: previous }) })).body
    const one = await ask('1', undefined, { instructions: 'Be kind.' })
    expect(textOf(one)).toBe('Be kind. 1')
    const two = await ask('2', one['id'])
    expect(textOf(two)).toBe('- 1|Be kind. 1|2')
    const other = await ask('3', one['id'], { instructions: 'Be short.' })
    expect(textOf(other)).toBe('Be short. 1|Be kind. 1|3')
    expect(textOf(await ask('4', two['id']))).toBe('- 1|Be kind. 1|2|- 1|Be kind. 1|2|4')
  },
)

verifies(['openai-responses.store-false', 'openai-responses.previous-missing'], 'what is not stored cannot be found', async () => {
  const { api, gateway } = await start(echo())
  const { body } = await api.ask({ input: 'x', store: false })
  expect([body['status'], body['store']]).toEqual(['completed', false])
  const missing = { type: 'invalid_request_error', code: 'previous_response_not_found', param: 'previous_response_id' }
  const { status, body: refusal } = await api.ask({ input: 'y', previous_response_id: body['id'] })
  expect([status, refusal['error']]).toMatchObject([400, missing])
  expect((await api.get(body['id'] as string)).status).toBe(404)
  await expect.poll(() => gateway.openSessions).toBe(0)
  // What is stored may still be gone on from without storing more.
  const { body: kept } = await api.ask({ input: 'a' })
  const { body: unkept } = await api.ask({ input: 'b', previous_response_id: kept['id'], store: false })
  expect(textOf(unkept)).toBe('- a|- a|b')
})

verifies('openai-responses.isolation', 'what belongs to another is not found, whatever is asked of it', async () => {
  const { url } = await start(demo(), { tokens: { alice: 'a-0123456789abcdef', bob: 'b-0123456789abcdef' } })
  const alice = client(url, { token: 'a-0123456789abcdef' })
  const bob = client(url, { token: 'b-0123456789abcdef' })
  const { body: mine } = await alice.ask({ input: '/approve it' })
  const id = mine['id'] as string
  const item = (mine['output'] as Json[])[0]?.['id'] as string
  for (const { status, body } of [await bob.get(id), await bob.remove(id), await bob.cancel(id), await bob.items(id)]) {
    expect([status, body['error'].message]).toEqual([404, `Response with id '${id}' not found.`])
  }
  expect((await bob.call('GET', `/${id}?stream=true`)).status).toBe(404)
  expect((await bob.ask({ input: 'x', previous_response_id: id })).body['error'].code).toBe('previous_response_not_found')
  expect((await bob.ask({ input: [{ type: 'item_reference', id: item }] })).body['error'].code).toBe('item_not_found')
  // An answer to a question of another's is said to nobody.
  await bob.ask({
    input: [
      { type: 'mcp_approval_response', approval_request_id: item, approve: true },
      { role: 'user', content: 'x' },
    ],
  })
  const input = [{ type: 'mcp_approval_response', approval_request_id: item, approve: false }]
  expect(textOf((await alice.ask({ previous_response_id: id, input })).body)).toBe('Denied: it')
  expect((await client(url, { token: 'wrong' }).get(id)).status).toBe(401)
})

verifies('openai-responses.delete', 'a deleted response is not found; what goes on from it stays whole', async () => {
  const { api } = await start(echo())
  const { body: one } = await api.ask({ input: '1' })
  const { body: two } = await api.ask({ input: '2', previous_response_id: one['id'] })
  const { status, body } = await api.remove(one['id'] as string)
  expect([status, body]).toEqual([200, { id: one['id'], object: 'response', deleted: true }])
  expect((await api.get(one['id'] as string)).status).toBe(404)
  expect((await api.remove(one['id'] as string)).status).toBe(404)
  expect((await api.ask({ input: 'x', previous_response_id: one['id'] })).status).toBe(400)
  expect((await api.get(two['id'] as string)).body).toEqual(two)
  expect(textOf((await api.ask({ input: '3', previous_response_id: two['id'] })).body)).toBe('- 1|- 1|2|- 1|- 1|2|3')
  expect((await api.remove(two['id'] as string)).status).toBe(200)
})

verifies('openai-responses.delete', 'one that runs is stopped when it is deleted', async () => {
  const { agent, state } = patient()
  const { api, gateway } = await start(agent)
  const { body } = await api.ask({ input: 'x', background: true })
  expect((await api.remove(body['id'] as string)).status).toBe(200)
  expect(state.ended).toBe(1)
  expect((await api.get(body['id'] as string)).status).toBe(404)
  await expect.poll(() => gateway.openSessions).toBe(0)
})

verifies('openai-responses.items', 'input items are listed in pages, in either order', async () => {
  const { api } = await start(echo())
  const input = Array.from({ length: 25 }, (_, n) => ({ role: 'user', content: `m${n}` }))
  const { body } = await api.ask({ input })
  const id = body['id'] as string
  const said = (page: Json): string[] => (page['data'] as Json[]).map((item) => item['content'][0].text as string)
  const first = (await api.items(id)).body
  expect(first).toMatchObject({ object: 'list', has_more: true, first_id: first['data'][0].id, last_id: first['data'][19].id })
  expect(said(first).slice(0, 2)).toEqual(['m24', 'm23'])
  const rest = (await api.items(id, `?after=${first['last_id']}`)).body
  expect([said(rest), rest['has_more']]).toEqual([['m4', 'm3', 'm2', 'm1', 'm0'], false])
  const ascending = (await api.items(id, '?order=asc&limit=3')).body
  expect(said(ascending)).toEqual(['m0', 'm1', 'm2'])
  const bad = ['?limit=0', '?limit=101', '?limit=x', '?order=up', '?after=msg_1']
  expect(await Promise.all(bad.map(async (query) => (await api.items(id, query)).status))).toEqual(bad.map(() => 400))
})

verifies(
  ['openai-responses.background', 'openai-responses.get'],
  'a background response is answered at once and goes on without a reader',
  async () => {
    const { agent, state } = patient()
    // Without the reader that stays, nobody reading would end it at once.
    const { api } = await start(agent, { limits: { resumeWindowMs: 1 } })
    const { status, body } = await api.ask({ input: 'x', background: true })
    expect([status, body['status'], body['background'], body['usage']]).toEqual([200, 'in_progress', true, null])
    const id = body['id'] as string
    await expect.poll(async () => textOf((await api.get(id)).body)).toBe('begun')
    expect((await api.ask({ input: 'y', previous_response_id: id })).body['error'].code).toBe('previous_response_in_progress')
    state.go()
    await expect.poll(async () => (await api.get(id)).body['status']).toBe('completed')
    expect(textOf((await api.get(id)).body)).toBe('begun done')
    expect((await api.ask({ input: 'x', background: true, store: false })).body['error'].param).toBe('background')
  },
)

verifies('openai-responses.cancel', 'a background response can be cancelled, more than once; a synchronous one can not', async () => {
  const { agent, state } = patient()
  const { api } = await start(agent)
  const { body } = await api.ask({ input: 'x', background: true })
  const id = body['id'] as string
  const { status, body: cancelled } = await api.cancel(id)
  expect([status, cancelled['status'], cancelled['id']]).toEqual([200, 'cancelled', id])
  expect(state.ended).toBe(1)
  expect((await api.cancel(id)).body).toEqual(cancelled)
  expect((await api.get(id)).body).toEqual(cancelled)
  expect((await api.replay(id)).at(-1)).toMatchObject({ type: 'response.incomplete', response: { status: 'cancelled' } })
  state.go()
  const { body: sync } = await api.ask({ input: 'x' })
  expect((await api.cancel(sync['id'] as string)).body['error'].message).toBe('Cannot cancel a synchronous response.')
  const { body: done } = await api.ask({ input: 'x', background: true })
  await expect.poll(async () => (await api.get(done['id'] as string)).body['status']).toBe('completed')
  expect((await api.cancel(done['id'] as string)).body['status']).toBe('completed')
})

verifies('openai-responses.disconnect', 'a client that leaves stops its response, streamed or not', async () => {
  for (const stream of [true, false]) {
    const { agent, state } = patient()
    const { api, gateway } = await start(agent)
    const leave = new AbortController()
    const asked = api.call('POST', '', { body: { input: 'x', stream }, signal: leave.signal })
    if (stream) for await (const { type } of readEvents(await asked)) if (type === 'response.output_text.delta') break
    await expect.poll(() => gateway.openResponses).toBe(stream ? 0 : 1)
    leave.abort()
    await asked.catch(() => undefined)
    await expect.poll(() => [state.ended, gateway.openResponses, gateway.openSessions]).toEqual([1, 0, 0])
  }
})

/** Reads a stream until so many events came, and cuts it there. */
async function cutAfter(open: (signal: AbortSignal) => Promise<Response>, many: number): Promise<Told[]> {
  const leave = new AbortController()
  const heard: Told[] = []
  try {
    for await (const event of readEvents(await open(leave.signal))) {
      heard.push(event)
      if (heard.length === many) leave.abort()
      if (heard.length >= many) break
    }
  } catch {
    // It was cut.
  }
  return heard
}

verifies('openai-responses.get-stream', 'a stream that is cut again and again misses and repeats nothing', async () => {
  const { api } = await start(counter)
  const N = 6000
  const body = { input: String(N), background: true, stream: true }
  const heard = await cutAfter((signal) => api.call('POST', '', { body, signal }), 50)
  const id = heard[0]?.['response'].id as string
  for (let cut = 0; heard.at(-1)?.type !== 'response.completed'; cut++) {
    const from = `/${id}?stream=true&starting_after=${heard.at(-1)?.sequence_number}`
    heard.push(...(await cutAfter((signal) => api.call('GET', from, { signal }), cut < 8 ? 100 + 130 * cut : Infinity)))
  }
  expect(heard.map(({ sequence_number }) => sequence_number)).toEqual(heard.map((_, index) => index))
  expect(deltasOf(heard)).toBe(counted(N))
  // Days later it is the same.
  const whole = await api.replay(id)
  expect(whole.slice(0, -1)).toEqual(heard.slice(0, -1))
  expect(await api.replay(id, whole.length - 3)).toEqual(whole.slice(-2))
  expect(await api.replay(id, whole.length - 1)).toEqual([])
  expect((await api.call('GET', `/${id}?stream=true&starting_after=x`)).status).toBe(400)
})

test('a stream does not go on from an event that was not told', async () => {
  const { agent, state } = patient()
  const { api, gateway } = await start(agent)
  const heard = await cutAfter((signal) => api.call('POST', '', { body: { input: 'x', background: true, stream: true }, signal }), 5)
  const last = heard.at(-1)?.sequence_number ?? 0
  const { id } = heard[0]?.['response'] as { id: string }
  const refused = async (number: number): Promise<unknown[]> => {
    const response = await api.call('GET', `/${id}?stream=true&starting_after=${number}`)
    const { error } = (await response.json()) as Json
    return [response.status, error.type, error.code, error.param]
  }
  const REFUSED = [400, 'invalid_request_error', 'invalid_value', 'starting_after']
  expect(await refused(last + 1)).toEqual(REFUSED)
  const goesOn = api.replay(id, last)
  state.go()
  const rest = await goesOn
  expect(rest.at(-1)?.type).toBe('response.completed')
  const end = rest.at(-1)?.sequence_number ?? 0
  expect(end).toBe(last + rest.length)
  expect(await refused(end + 1)).toEqual(REFUSED)
  expect(await refused(999_999)).toEqual(REFUSED)
  expect(await api.replay(id, end)).toEqual([])
  await expect.poll(() => gateway.openSessions).toBe(0)
})

verifies('openai-responses.restart', 'what is stored survives a restart of the server', async () => {
  const data = mkdtempSync(join(tmpdir(), 'uamp-test-'))
  onTestFinished(() => rmSync(data, { recursive: true, force: true }))
  const open = () => serve([demo(), echo()], { port: 0, data, log: () => undefined })
  const before = await open()
  const events = await client(before.url).stream({ model: 'demo', input: '/count 700' })
  const one = events.at(-1)?.['response'] as Json
  await before.close({ graceMs: 0 })

  const after = await open()
  onTestFinished(() => after.close({ graceMs: 0 }))
  const api = client(after.url)
  expect((await api.get(one['id'] as string)).body).toEqual(one)
  expect(await api.replay(one['id'] as string)).toEqual(events)
  const { body: two } = await api.ask({ model: 'echo', input: 'next', previous_response_id: one['id'] })
  expect(textOf(two)).toBe(`- /count 700|${counted(700)}|next`)
})

test('a thousand responses leave nothing in memory', async () => {
  const { api, gateway } = await start(echo())
  for (let round = 0; round < 20; round++) {
    await Promise.all(Array.from({ length: 50 }, (_, n) => (n % 2 === 0 ? api.ask({ input: 'x' }) : api.stream({ input: 'x' }))))
  }
  await expect.poll(() => gateway.openSessions).toBe(0)
})

verifies('openai-responses.item-reference', 'items are named by their id, with or without the response before', async () => {
  const { api } = await start([echo(), demo()])
  const { body: one } = await api.ask({ model: 'demo', input: [{ role: 'user', content: '/think tea' }] })
  const [thought, said] = one['output'] as Json[]
  const input = [
    { type: 'item_reference', id: thought?.['id'] },
    { type: 'item_reference', id: said?.['id'] },
    { role: 'user', content: 'x' },
  ]
  expect(textOf((await api.ask({ model: 'echo', input })).body)).toBe('- I thought about: tea|x')
  const asked = (await api.items(one['id'] as string)).body['data'][0] as Json
  expect(textOf((await api.ask({ model: 'echo', input: [{ type: 'item_reference', id: asked['id'] }] })).body)).toBe('- /think tea')
  for (const id of ['msg_1', `${said?.['id']}9`, 'msg_AAAAAAAAQACAAAAAAAAAAA_0']) {
    const { status, body } = await api.ask({ input: [{ type: 'item_reference', id }] })
    expect([status, body['error'].code, body['error'].param]).toEqual([400, 'item_not_found', 'input[0].id'])
  }
})

test('of a long conversation a page reads what it shows, and no more than its reader may hold', async () => {
  const { api } = await start(short(), { limits: { heldBytesPerPrincipal: 4_000_000 } })
  const large = 'x'.repeat(1_000_000)
  let id: unknown
  for (let n = 0; n < 3; n++) {
    const { body } = await api.ask({
      input: [{ role: 'user', content: `${n} ${large}` }],
      ...(id !== undefined && { previous_response_id: id }),
    })
    id = body['id']
  }
  const page = async (query: string) => {
    const { status, body } = await api.items(String(id), `?${query}`)
    const { data, has_more } = body
    const shown = (data as Json[] | undefined)?.map((item) => ((item['content'] as Json[])[0]?.['text'] as string).slice(0, 3).trim())
    return { status, shown, has_more: has_more as boolean, last: (data as Json[] | undefined)?.at(-1)?.['id'] as string }
  }
  const all = async (order: string) => {
    const shown: (string | undefined)[] = []
    for (let after = ''; ;) {
      const next = await page(`limit=1&order=${order}${after}`)
      expect(next.status).toBe(200)
      shown.push(...(next.shown ?? []))
      if (!next.has_more) return shown
      after = `&after=${next.last}`
    }
  }
  expect(await all('desc')).toEqual(['2 x', 'ok', '1 x', 'ok', '0 x'])
  expect(await all('asc')).toEqual(['0 x', 'ok', '1 x', 'ok', '2 x'])
  expect(await page('after=nothing')).toMatchObject({ status: 400 })
})

test('items that are named are read one response at a time, and no more of them than their reader may hold', async () => {
  const { api } = await start(short(), { limits: { heldBytesPerPrincipal: 4_000_000 } })
  const large = 'x'.repeat(1_000_000)
  const ids: string[] = []
  for (let n = 0; n < 6; n++) {
    const { body } = await api.ask({ input: large })
    const { body: items } = await api.items(String(body['id']))
    ids.push(items['data'][0].id as string)
  }
  const ask = (names: readonly string[]) =>
    api.ask({ input: [...names.map((id) => ({ type: 'item_reference', id })), { role: 'user', content: 'x' }] })
  expect((await ask(ids.slice(0, 2))).status).toBe(200)
  expect(await ask(ids)).toMatchObject({ status: 503 })
})
