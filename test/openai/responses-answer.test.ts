import { expect } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { text } from '../../src/core/agent-kit/drafts.ts'
import type { AgentPort } from '../../src/core/ports/agent.ts'
import { coin } from '../support/money.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'
import { checkEvents, client, deltasOf, fn, textOf, typesOf, type Json } from './responses-wire.ts'

const start = async (agents: AgentPort | readonly AgentPort[] = demo()) => {
  const server = await startServer(agents)
  return { ...server, api: client(server.url) }
}

verifies(['openai-responses.create', 'openai-responses.headers'], 'the response object has every field that its type demands', async () => {
  const { api } = await start()
  const { body, headers, status } = await api.ask({ model: 'gpt-x', input: 'hello' })
  expect(status).toBe(200)
  expect(body).toMatchObject({
    id: expect.stringMatching(/^resp_/),
    object: 'response',
    created_at: expect.any(Number),
    completed_at: expect.any(Number),
    status: 'completed',
    background: false,
    error: null,
    incomplete_details: null,
    instructions: null,
    max_output_tokens: null,
    max_tool_calls: null,
    model: 'demo',
    parallel_tool_calls: true,
    previous_response_id: null,
    prompt_cache_key: null,
    reasoning: { effort: null, summary: null },
    safety_identifier: null,
    service_tier: 'default',
    store: true,
    temperature: 1,
    text: { format: { type: 'text' } },
    tool_choice: 'auto',
    tools: [],
    top_logprobs: 0,
    top_p: 1,
    presence_penalty: 0,
    frequency_penalty: 0,
    truncation: 'disabled',
    metadata: {},
  })
  expect(body['usage']).toMatchObject({
    input_tokens: expect.any(Number),
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: expect.any(Number),
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: expect.any(Number),
  })
  expect(headers.get('content-type')).toMatch('application/json')
  expect(headers.get('x-request-id')).toMatch(/^req_/)
  expect(Number(headers.get('x-ratelimit-remaining-requests'))).toBeGreaterThan(0)
})

verifies(['openai-responses.echo', 'openai-responses.unknown-fields'], 'settings are told back, and unknown ones are ignored', async () => {
  const seen: unknown[] = []
  const { api } = await start(
    defineAgent('seer', async function* ({ config }) {
      seen.push(config)
      yield text('seen')
    }),
  )
  const settings = {
    instructions: 'Be brief.',
    temperature: 0.2,
    top_p: 0.5,
    max_output_tokens: 99,
    metadata: { a: 'b' },
    reasoning: { effort: 'low', summary: 'auto' },
    text: { format: { type: 'json_object' }, verbosity: 'low' },
    truncation: 'auto',
    user: 'me',
    parallel_tool_calls: false,
    tool_choice: 'required',
    safety_identifier: 'safe',
  }
  const { body, status } = await api.ask({
    input: 'x',
    ...settings,
    tools: [fn('f')],
    include: ['reasoning.encrypted_content'],
    no_such_field: { deep: [1] },
  })
  expect(status).toBe(200)
  expect(body).toMatchObject({ ...settings, tools: [{ type: 'function', name: 'f', description: null, strict: false }] })
  expect(seen).toMatchObject([
    {
      instructions: 'Be brief.',
      tools: [{ type: 'function', function: { name: 'f' } }],
      response_format: { type: 'json_object' },
      extensions: { openai: { temperature: 0.2, max_output_tokens: 99, no_such_field: { deep: [1] } } },
    },
  ])
})

verifies('openai-responses.agent', 'the model names an agent at the root, the path does elsewhere', async () => {
  const named = (name: string): AgentPort =>
    defineAgent(name, async function* () {
      yield text(`I am ${name}`)
    })
  const { url } = await startServer([named('demo'), named('alice.bot')])
  const at = async (path: string, model?: string): Promise<string> => textOf((await client(url, { path }).ask({ input: 'x', model })).body)
  expect(await at('/v1/responses')).toBe('I am demo')
  expect(await at('/responses', 'alice.bot')).toBe('I am alice.bot')
  expect(await at('/v1/responses', 'gpt-5')).toBe('I am demo')
  expect(await at('/agents/alice.bot/v1/responses', 'demo')).toBe('I am alice.bot')
  const { status, body } = await client(url, { path: '/agents/nobody/v1/responses' }).ask({ input: 'x' })
  expect([status, body['error'].code]).toEqual([404, 'model_not_found'])
})

verifies(['openai-responses.refusal', 'openai-responses.reasoning'], 'refusals and signed thoughts have their own form', async () => {
  const { api } = await start(
    defineAgent('prude', async function* () {
      yield { type: 'thinking', content: 'hm', is_delta: true }
      yield { type: 'thinking', content: '', is_delta: true, signature: 'c2lnbmVk' }
      yield text('Well. ')
      yield { type: 'response.delta', delta: { type: 'text', text: 'I will', refusal: true } }
      yield { type: 'response.delta', delta: { type: 'text', text: ' not.', refusal: true } }
    }),
  )
  const events = await api.stream({ input: 'x' })
  checkEvents(events)
  const response = events.at(-1)?.['response'] as Json
  expect(response['output']).toMatchObject([
    { type: 'reasoning', summary: [{ type: 'summary_text', text: 'hm' }], encrypted_content: 'c2lnbmVk' },
    {
      type: 'message',
      content: [
        { type: 'output_text', text: 'Well. ' },
        { type: 'refusal', refusal: 'I will not.' },
      ],
    },
  ])
  expect(events.find(({ type }) => type === 'response.refusal.done')).toMatchObject({ refusal: 'I will not.', content_index: 1 })
  expect((await api.get(response['id'] as string)).body['output']).toEqual(response['output'])
})

for (const [stop, reason] of [
  ['length', 'max_output_tokens'],
  ['content_filter', 'content_filter'],
] as const) {
  verifies('openai-responses.incomplete', `an answer that ends for ${stop} is incomplete`, async () => {
    const { api } = await start(
      defineAgent('short', async function* () {
        yield text('half a sen')
        yield { type: 'response.done', response: { id: '', status: 'completed', output: [], extensions: { uamp: { stop_reason: stop } } } }
      }),
    )
    const events = await api.stream({ input: 'x' })
    expect(events.at(-1)).toMatchObject({
      type: 'response.incomplete',
      response: { status: 'incomplete', incomplete_details: { reason }, output: [{ status: 'incomplete' }] },
    })
    const { status, body } = await api.ask({ input: 'x' })
    expect([status, body['status'], body['incomplete_details']]).toEqual([200, 'incomplete', { reason }])
  })
}

verifies('openai-responses.usage', 'usage and signature are told', async () => {
  const { api } = await start(
    defineAgent('counted', async function* () {
      yield text('x')
      yield { type: 'usage.delta', delta: { input_tokens: 10, cache_read: 4 } }
      yield { type: 'usage.delta', delta: { output_tokens: 3, reasoning: 2 } }
      yield { type: 'response.done', response: { id: '', status: 'completed', output: [] }, signature: 'jwt' }
    }),
  )
  const { body } = await api.ask({ input: 'x' })
  expect(body).toMatchObject({
    signature: 'jwt',
    usage: {
      input_tokens: 10,
      input_tokens_details: { cached_tokens: 4 },
      output_tokens: 3,
      output_tokens_details: { reasoning_tokens: 2 },
      total_tokens: 13,
    },
  })
})

verifies('openai-responses.failed', 'a failure is a status before the first word, and an event after it', async () => {
  const { api } = await start(
    defineAgent('fails', async function* ({ messages }) {
      if (messages.at(-1)?.content === 'late') yield text('I begin')
      yield { type: 'response.error', error: { code: 'provider_error', message: 'The model is away' } }
    }),
  )
  const early = await api.call('POST', '', { body: { input: 'early', stream: true } })
  expect([early.status, early.headers.get('x-should-retry')]).toEqual([502, 'false'])
  expect(await early.json()).toMatchObject({ error: { message: 'The model is away', type: 'server_error', code: 'provider_error' } })
  const late = await api.stream({ input: 'late' })
  expect(typesOf(late).slice(-4)).toEqual(['output_text.done', 'content_part.done', 'output_item.done', 'failed'])
  expect(late.at(-1)?.['response']).toMatchObject({ status: 'failed', error: { code: 'provider_error', message: 'The model is away' } })
  const { status, body } = await api.ask({ input: 'late' })
  expect([status, body['error'].code]).toEqual([502, 'provider_error'])
  const { body: kept } = await api.get((late[0]?.['response'] as Json)['id'] as string)
  expect(kept).toMatchObject({ status: 'failed', output: [{ type: 'message', status: 'incomplete', content: [{ text: 'I begin' }] }] })
})

verifies('openai-responses.payment-asked', 'payment is asked for before the first byte, and X-PAYMENT pays', async () => {
  const server = await start(
    defineAgent('dear', async function* (turn) {
      const { payment } = await turn.ask('payment.required', { requirements: { amount: '0.01', currency: 'USD' } })
      yield text(`paid with a ${payment.scheme}`)
    }),
  )
  const { api, gateway } = server
  for (const stream of [true, false]) {
    const refused = await api.call('POST', '', { body: { input: 'x', stream } })
    expect(refused.status).toBe(402)
    expect(await refused.json()).toMatchObject({
      error: { type: 'payment_required', code: 'payment_required', accepts: [{ amount: '0.01', currency: 'USD', scheme: 'token' }] },
      context: { accepts: [{ amount: '0.01' }] },
    })
  }
  const { status, body } = await api.ask({ input: 'x' }, { 'x-payment': await coin(server, '0.01') })
  expect([status, textOf(body)]).toEqual([200, 'paid with a token'])
  await expect.poll(() => gateway.openSessions).toBe(0)
})

verifies('openai-responses.media', 'events that OpenAI has none for are told to whoever asks for them, and to nobody else', async () => {
  const { api } = await start()
  const events = await api.stream({ input: '/state', include: ['uamp.events'] })
  expect(typesOf(events).filter((type) => type.startsWith('uamp:'))).toEqual([
    'uamp:x.state.snapshot',
    'uamp:x.state.delta',
    'uamp:x.state.delta',
    'uamp:x.state.delta',
  ])
  expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_, index) => index))
  const progress = await api.stream({ input: '/progress 1', include: ['uamp.events'], store: false })
  expect(progress.find(({ type }) => type === 'uamp:progress')).toMatchObject({ percent: 100, message: 'Step 1 of 1' })
})

verifies('openai-responses.sequence', 'a long answer is whole, and its numbers are without a gap', async () => {
  const { api } = await start()
  const events = await api.stream({ input: '/count 5000' })
  expect(deltasOf(events)).toBe(Array.from({ length: 5000 }, (_, n) => n + 1).join(' '))
  expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_, index) => index))
})

verifies(
  'openai-responses.stream-order',
  'an agent that says nothing for long: heartbeats keep the connection, and the answer arrives',
  async () => {
    let go = (): void => undefined
    const gate = new Promise<void>((resolve) => (go = resolve))
    const slow = defineAgent('slow', async function* () {
      await gate
      yield text('at last')
    })
    const { url } = await startServer(slow, { limits: { heartbeatMs: 20 } })
    const response = await client(url).call('POST', '', { body: { input: 'x', stream: true } })
    expect(response.status).toBe(200)
    const decoder = new TextDecoder()
    let heard = ''
    for await (const bytes of response.body ?? []) {
      heard += decoder.decode(bytes, { stream: true })
      if (/\n: .*\n\n$/.test(heard)) go()
    }
    expect(heard).toMatch(/"type":"response.created".*\n\n: .*"type":"response.completed".*at last/s)
  },
)
