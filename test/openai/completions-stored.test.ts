import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { llmAgent } from '../../src/agents/llm/index.ts'
import { modelOf } from '../../src/agents/llm/model.ts'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { text } from '../../src/core/agent-kit/drafts.ts'
import type { Store } from '../../src/core/ports/store.ts'
import type { Host, Transport } from '../../src/core/ports/transport.ts'
import { openaiCompatible } from '../../src/providers/openai-compatible/index.ts'
import { StoredCompletions } from '../../src/transports/completions/stored.ts'
import { startUpstream } from '../providers/upstream/index.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'
import { ask, stream, user, type Wire } from './support.ts'

const PATH = '/v1/chat/completions'
const ALICE = 'alice-0123456789abcdef'
const BOB = 'bob-0123456789abcdef'

const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

const other = defineAgent('other', async function* () {
  yield text('Other')
})
const failing = defineAgent('failing', async function* () {
  yield text('Half')
  throw new Error('broken')
})

async function started(options: Parameters<typeof startServer>[1] = {}) {
  const data = mkdtempSync(join(tmpdir(), 'uamp-completions-'))
  onTestFinished(() => rmSync(data, { recursive: true, force: true }))
  const { url } = await startServer([demo(), other, failing], { data, tokens: { alice: ALICE, bob: BOB }, ...options })
  const call = async (method: string, path = '', { token = ALICE, body }: { token?: string; body?: object } = {}) => {
    const response = await fetch(url + PATH + path, {
      method,
      headers: { 'content-type': 'application/json', ...bearer(token) },
      ...(body && { body: JSON.stringify(body) }),
    })
    return { status: response.status, body: (await response.json()) as Wire }
  }
  const make = async (content: string, more: object = {}) =>
    (await ask(url + PATH, { model: 'demo', messages: [user(content)], store: true, ...more }, bearer(ALICE))).body
  return { url, call, make }
}

function bound(target: object, name: PropertyKey): unknown {
  const value: unknown = Reflect.get(target, name)
  return typeof value === 'function' ? value.bind(target) : value
}

describe('stored completions', () => {
  verifies('openai-completions.stored', 'are found as they were told, changed, and deleted', async () => {
    const { call, make } = await started()
    const told = await make('Hello', { metadata: { topic: 'greeting' }, n: 2 })
    expect(told.metadata).toEqual({ topic: 'greeting' })
    expect(told.choices).toHaveLength(2)
    expect(await call('GET', `/${told.id}`)).toEqual({ status: 200, body: told })
    const changed = await call('POST', `/${told.id}`, { body: { metadata: { topic: 'farewell' } } })
    expect(changed).toEqual({ status: 200, body: { ...told, metadata: { topic: 'farewell' } } })
    expect((await call('GET', `/${told.id}`)).body.metadata).toEqual({ topic: 'farewell' })
    expect(await call('DELETE', `/${told.id}`)).toEqual({
      status: 200,
      body: { object: 'chat.completion.deleted', id: told.id, deleted: true },
    })
    for (const [method, path] of [
      ['GET', ''],
      ['DELETE', ''],
      ['GET', '/messages'],
    ] as const) {
      expect(await call(method, `/${told.id}${path}`)).toMatchObject({
        status: 404,
        body: { error: { type: 'invalid_request_error', code: 'not_found', param: 'completion_id' } },
      })
    }
    expect((await call('GET')).body.data).toEqual([])
  })

  test('a change while another is written gave 409 with the numbers of versions in the store', async () => {
    let host!: Host
    const probe: Transport = { name: 'probe', routes: (given) => ((host = given), []) }
    const { url } = await startServer({ ...other, transports: [probe] })
    const { id } = (await ask(url + PATH, { model: 'other', messages: [user('Hello')], store: true })).body
    // The store reads at its own pace: both have read the completion before either writes.
    let read = 0
    const get: Store['get'] = async (key) => {
      const found = await host.store.get(key)
      if (++read <= 2) await expect.poll(() => read).toBeGreaterThanOrEqual(2)
      return found
    }
    const store = new Proxy(host.store, { get: (target, name) => (name === 'get' ? get : bound(target, name)) })
    const completions = new StoredCompletions({ ...host, store })
    const principal = { tenant: 'default', id: 'anonymous', scopes: ['*'] }
    const quota = { limit: 1, remaining: 1, resetMs: 0 }
    const access = { authorize: () => true }
    const change = (n: number) =>
      completions.update({
        principal,
        quota,
        access,
        params: { id },
        text: async () => JSON.stringify({ metadata: { n: `${n}` } }),
      } as never)
    await Promise.all([change(1), change(2)])
    expect(read).toBeGreaterThan(2)
    const { metadata } = (await (await fetch(`${url}${PATH}/${id as string}`)).json()) as Wire
    expect([{ n: '1' }, { n: '2' }]).toContainEqual(metadata)
  })

  test('a metadata key that cannot be kept was dropped without a word', async () => {
    const { call, make } = await started()
    const body = JSON.parse('{"metadata":{"a":"b","__proto__":"c"}}') as object
    const refused = {
      error: { type: 'invalid_request_error', param: 'metadata', message: expect.stringContaining('"__proto__"') as string },
    }
    expect(await make('Hello', body)).toMatchObject(refused)
    const { id } = await make('Hello', { metadata: { a: 'b' } })
    expect(await call('POST', `/${id}`, { body })).toMatchObject({ status: 400, body: refused })
    expect((await call('GET', `/${id}`)).body.metadata).toEqual({ a: 'b' })
  })

  verifies('openai-completions.stored', 'are those that asked for it, streamed or not, and did not fail', async () => {
    const { url, call, make } = await started()
    await make('Not kept', { store: false })
    expect((await make('Broken', { model: 'failing' })).error).toMatchObject({ type: 'server_error' })
    const { chunks } = await stream(url + PATH, { model: 'demo', messages: [user('Kept')], store: true }, bearer(ALICE))
    const { data } = (await call('GET')).body
    expect(data).toHaveLength(1)
    expect(data[0]).toMatchObject({
      id: chunks[0].id,
      object: 'chat.completion',
      created: chunks[0].created,
      metadata: {},
      choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'You said: Kept' } }],
    })
  })

  verifies('openai-completions.stored-list', 'are listed in pages, in both orders, by model and metadata', async () => {
    const { call, make } = await started()
    const ids: string[] = []
    for (let n = 0; n < 5; n++) ids.push((await make(`${n}`, { metadata: { n: `${n}`, odd: `${n % 2}` } })).id as string)
    ids.push((await make('x', { model: 'other' })).id as string)
    const list = async (query: string) => {
      const { body } = await call('GET', query)
      return [
        body.data.map(({ id }: Wire) => ids.indexOf(id as string)),
        body.has_more,
        ids.indexOf(body.first_id as string),
        ids.indexOf(body.last_id as string),
      ]
    }
    expect(await list('')).toEqual([[0, 1, 2, 3, 4, 5], false, 0, 5])
    expect(await list('?limit=2')).toEqual([[0, 1], true, 0, 1])
    expect(await list(`?limit=2&after=${ids[1]}`)).toEqual([[2, 3], true, 2, 3])
    expect(await list(`?limit=4&order=desc&after=${ids[3]}`)).toEqual([[2, 1, 0], false, 2, 0])
    expect(await list('?model=other')).toEqual([[5], false, 5, 5])
    expect(await list('?metadata[odd]=1')).toEqual([[1, 3], false, 1, 3])
    expect(await list('?metadata[odd]=0&limit=1&order=desc')).toEqual([[4], true, 4, 4])
    expect(await list('?metadata[odd]=0&metadata[n]=2')).toEqual([[2], false, 2, 2])
    expect(await list('?metadata[none]=1')).toEqual([[], false, -1, -1])
    for (const [query, param] of [
      ['?limit=0', 'limit'],
      ['?limit=101', 'limit'],
      ['?order=up', 'order'],
      ['?after=nothing', 'after'],
    ] as const) {
      expect(await call('GET', query)).toMatchObject({ status: 400, body: { error: { type: 'invalid_request_error', param } } })
    }
  })

  verifies('openai-completions.stored-messages', 'show the messages they were asked with', async () => {
    const { call, make } = await started()
    const calls = [{ id: 'c1', type: 'function', function: { name: 'f', arguments: '{}' } }]
    const messages = [
      { role: 'system', content: 'Be kind' },
      { role: 'user', content: 'One', name: 'ada' },
      { role: 'assistant', content: null, tool_calls: calls },
      { role: 'tool', tool_call_id: 'c1', content: 'Two' },
      user([
        { type: 'text', text: 'Three' },
        { type: 'image_url', image_url: { url: 'https://example.com/a.png' } },
      ]),
    ]
    const { id } = await make('', { messages })
    const { body } = await call('GET', `/${id}/messages`)
    expect(body).toMatchObject({ object: 'list', has_more: false, first_id: `${id}-0`, last_id: `${id}-4` })
    expect(body.data).toMatchObject([
      { id: `${id}-0`, role: 'system', content: 'Be kind' },
      { role: 'user', content: 'One', name: 'ada' },
      { role: 'assistant', tool_calls: calls },
      { role: 'tool', tool_call_id: 'c1', content: 'Two' },
      { role: 'user', content: 'Three', content_items: [{ type: 'text' }, { type: 'image' }] },
    ])
    const page = (await call('GET', `/${id}/messages?limit=2&order=desc&after=${id}-4`)).body
    expect([page.data.map((message: Wire) => message.id), page.has_more]).toEqual([[`${id}-3`, `${id}-2`], true])
    expect((await call('GET', `/${id}/messages?after=none`)).status).toBe(400)
  })

  verifies('openai-completions.stored', 'belong to who asked: nobody else finds them', async () => {
    const { call, make } = await started()
    const { id } = await make('Secret')
    const asBob = { token: BOB }
    expect((await call('GET', '', asBob)).body.data).toEqual([])
    expect((await call('GET', `?after=${id}`, asBob)).status).toBe(400)
    expect((await call('GET', `/${id}`, asBob)).status).toBe(404)
    expect((await call('GET', `/${id}/messages`, asBob)).status).toBe(404)
    expect((await call('POST', `/${id}`, { ...asBob, body: { metadata: {} } })).status).toBe(404)
    expect((await call('DELETE', `/${id}`, asBob)).status).toBe(404)
    expect((await call('GET', `/${id}`)).status).toBe(200)
  })

  test('go with the sessions they were made in', async () => {
    const { call, make } = await started({ limits: { sessionTtlMs: 1, sweepMs: 20 } })
    const { id } = await make('Short-lived')
    // Nothing is left of it: also its own record is gone.
    await expect.poll(async () => (await call('GET', `?after=${id}`)).status, { timeout: 10_000 }).toBe(400)
  })

  test('have bounded metadata', async () => {
    const { url } = await started()
    const many = Object.fromEntries(Array.from({ length: 17 }, (_, n) => [`k${n}`, 'v']))
    for (const metadata of [many, { k: 'x'.repeat(513) }, { ['k'.repeat(65)]: 'v' }, { k: 1 }, 'text']) {
      const answer = await ask(url + PATH, { messages: [user('Hi')], store: true, metadata }, bearer(ALICE))
      expect(answer.status).toBe(400)
      expect(answer.body.error.param).toMatch(/^metadata/)
    }
  })
})

verifies(
  'openai-completions.model-settings',
  'what only models of OpenAI’s kind know goes to them, and what they tell comes back',
  async () => {
    const upstream = await startUpstream()
    const logprobs = { content: [{ token: 'Hi', logprob: -0.1, bytes: [72, 105], top_logprobs: [] }], refusal: null }
    const choice = { index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop', logprobs }
    const json = { 'content-type': 'application/json' }
    const whole = { id: 'x', object: 'chat.completion', created: 1, model: 'm', choices: [choice], system_fingerprint: 'fp_1' }
    const chunk = {
      ...whole,
      object: 'chat.completion.chunk',
      choices: [{ index: 0, delta: { role: 'assistant', content: 'Hi' }, logprobs }],
    }
    const last = { ...chunk, choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }
    const streamed = `data: ${JSON.stringify(chunk)}\n\ndata: ${JSON.stringify(last)}\n\ndata: [DONE]\n\n`
    upstream.script('compatible', { status: 200, headers: json, body: JSON.stringify(whole) })
    upstream.script('compatible', { status: 200, headers: { 'content-type': 'text/event-stream' }, body: streamed })
    const provider = openaiCompatible({ name: 'c', baseUrl: `${upstream.url}/compatible/v1` })
    const { url } = await startServer(llmAgent({ name: 'm', model: modelOf(provider, 'text') }))
    const settings = { logprobs: true, top_logprobs: 2, logit_bias: { '50256': -100 }, user: 'ada', seed: 7 }
    const { body } = await ask(url + PATH, { model: 'm', messages: [user('Hi')], store: true, ...settings })
    expect(upstream.requests[0]?.body).toMatchObject(settings)
    expect(body).toMatchObject({ system_fingerprint: 'fp_1', choices: [{ logprobs }] })
    expect(await (await fetch(`${url + PATH}/${body.id}`)).json()).toMatchObject({ system_fingerprint: 'fp_1', choices: [{ logprobs }] })
    const { chunks } = await stream(url + PATH, { model: 'm', messages: [user('Hi')], ...settings })
    expect(chunks.at(-1)).toMatchObject({ system_fingerprint: 'fp_1', choices: [{ logprobs, finish_reason: 'stop' }] })
  },
)
