import { describe, expect } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { text } from '../../src/core/agent-kit/drafts.ts'
import type { AgentPort } from '../../src/core/ports/agent.ts'
import { coin } from '../support/money.ts'
import { endless, mirror, scripted, type Mirrored } from '../support/agents.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'
import { BOTH, connect, DIALECTS, says, typesOf, withoutIds, type Heard } from './realtime-wire.ts'

const start = (agent: AgentPort) => startServer(agent)
const mirrored = (done: Heard | undefined): Mirrored => JSON.parse(done?.['response'].output[0].content[0].text as string) as Mirrored
const LIMITS = {
  type: 'rate_limits.updated',
  rate_limits: [{ name: 'requests', limit: expect.any(Number), remaining: expect.any(Number), reset_seconds: expect.any(Number) }],
}
const USAGE = {
  total_tokens: 5,
  input_tokens: 3,
  output_tokens: 2,
  input_token_details: {
    text_tokens: 3,
    audio_tokens: 0,
    image_tokens: 0,
    cached_tokens: 1,
    cached_tokens_details: { text_tokens: 1, audio_tokens: 0, image_tokens: 0 },
  },
  output_token_details: { text_tokens: 2, audio_tokens: 0 },
}
const usage = { input_tokens: 3, output_tokens: 2, cache_read: 1 }

/** The parts of a response object that are the dialect's own. */
const own = {
  ga: (modalities: readonly string[]) => ({
    output_modalities: modalities.slice(0, 1),
    audio: { output: { format: { type: 'audio/pcm', rate: 24000 }, voice: 'alloy' } },
  }),
  beta: (modalities: readonly string[]) => ({ modalities, voice: 'alloy', output_audio_format: 'pcm16', temperature: 0.8 }),
}

describe.each(BOTH)('%s', (dialect) => {
  const words = DIALECTS[dialect]
  const common = { object: 'realtime.response', id: 'resp 1', conversation_id: 'conv 1', max_output_tokens: 'inf', metadata: null }
  const place = { response_id: 'resp 1', item_id: 'item 1', output_index: 0, content_index: 0 }
  const item = (status: string, content: readonly object[]) => ({
    id: 'item 1',
    object: 'realtime.item',
    type: 'message',
    status,
    role: 'assistant',
    content,
  })
  const added = (shown: object) => ({ type: words.added[0], previous_item_id: null, item: shown })
  const done = (shown: object) => words.added.slice(1).map((type) => ({ type, previous_item_id: null, item: shown }))
  const session = (modalities: string[]) => words.session({ modalities })

  verifies(
    ['openai-realtime.text', 'openai-realtime.event-ids', 'openai-realtime.usage', 'openai-realtime.rate-limits'],
    'an answer in text, event by event',
    async () => {
      const { url } = await start(scripted([text('Hel'), text('lo "\n'), { type: 'usage.delta', delta: usage }]))
      const wire = await connect(url, words.options)
      const events = await wire.respond(session(['text']))
      const whole = item('completed', [{ type: words.textPart, text: 'Hello "\n' }])
      expect(withoutIds(events)).toEqual([
        {
          type: 'response.created',
          response: { ...common, ...own[dialect](['text']), status: 'in_progress', status_details: null, output: [], usage: null },
        },
        LIMITS,
        { type: 'response.output_item.added', response_id: 'resp 1', output_index: 0, item: item('in_progress', []) },
        added(item('in_progress', [])),
        { type: 'response.content_part.added', ...place, part: { type: 'text', text: '' } },
        { type: `${words.text}.delta`, ...place, delta: 'Hel' },
        { type: `${words.text}.delta`, ...place, delta: 'lo "\n' },
        { type: `${words.text}.done`, ...place, text: 'Hello "\n' },
        { type: 'response.content_part.done', ...place, part: { type: 'text', text: 'Hello "\n' } },
        { type: 'response.output_item.done', response_id: 'resp 1', output_index: 0, item: whole },
        ...done(whole),
        {
          type: 'response.done',
          response: { ...common, ...own[dialect](['text']), status: 'completed', status_details: null, output: [whole], usage: USAGE },
        },
      ])
      const ids = wire.heard.map(({ event_id }) => event_id as unknown)
      expect(ids.every((id) => typeof id === 'string' && id !== '')).toBe(true)
      expect(new Set(ids).size).toBe(ids.length)
    },
  )

  verifies('openai-realtime.audio', 'an answer in audio, event by event', async () => {
    const { url } = await start(
      scripted([
        { type: 'audio.delta', audio: 'AAEC', format: 'pcm16' },
        { type: 'transcript.delta', transcript: 'Hel' },
        { type: 'audio.delta', audio: 'AwQFBgcI' },
        { type: 'transcript.delta', transcript: 'lo' },
        { type: 'audio.done' },
        { type: 'transcript.done', transcript: 'Hello' },
        // The whole of what was streamed is not said twice.
        { type: 'response.delta', delta: { type: 'audio', audio: 'AAECAwQFBgcI', format: 'pcm16', transcript: 'Hello', content_id: 'c' } },
      ]),
    )
    const wire = await connect(url, words.options)
    const events = await wire.respond()
    const whole = item('completed', [{ type: words.audioPart, transcript: 'Hello' }])
    const modalities = ['audio', 'text']
    expect(withoutIds(events)).toEqual([
      {
        type: 'response.created',
        response: { ...common, ...own[dialect](modalities), status: 'in_progress', status_details: null, output: [], usage: null },
      },
      LIMITS,
      { type: 'response.output_item.added', response_id: 'resp 1', output_index: 0, item: item('in_progress', []) },
      added(item('in_progress', [])),
      { type: 'response.content_part.added', ...place, part: { type: 'audio', transcript: '' } },
      { type: `${words.audio}.delta`, ...place, delta: 'AAEC' },
      { type: `${words.transcript}.delta`, ...place, delta: 'Hel' },
      { type: `${words.audio}.delta`, ...place, delta: 'AwQFBgcI' },
      { type: `${words.transcript}.delta`, ...place, delta: 'lo' },
      { type: `${words.audio}.done`, ...place },
      { type: `${words.transcript}.done`, ...place, transcript: 'Hello' },
      { type: 'response.content_part.done', ...place, part: { type: 'audio', transcript: 'Hello' } },
      { type: 'response.output_item.done', response_id: 'resp 1', output_index: 0, item: whole },
      ...done(whole),
      {
        type: 'response.done',
        response: { ...common, ...own[dialect](modalities), status: 'completed', status_details: null, output: [whole], usage: null },
      },
    ])
  })

  verifies('openai-realtime.text-for-audio', 'an agent that only writes, to a client that would hear', async () => {
    const { url } = await start(demo())
    const wire = await connect(url, words.options)
    const events = await wire.respond(session(['audio']), says('hi'))
    expect(events.filter(({ type }) => type === `${words.text}.delta`).map(({ delta }) => delta as string)).toEqual([
      'You',
      ' said:',
      ' hi',
    ])
    expect(events.some(({ type }) => type.startsWith(words.audio))).toBe(false)
  })

  verifies('openai-realtime.transcript-as-text', 'an agent that speaks, to a client that only reads', async () => {
    const { url } = await start(demo())
    const wire = await connect(url, words.options)
    const events = await wire.respond(session(['text']), says('/audio 0.2'))
    expect(events.at(-1)?.['response'].output[0].content).toEqual([{ type: words.textPart, text: 'A tone of 0.2 s.' }])
    expect(events.some(({ type }) => type.startsWith(words.audio))).toBe(false)
  })

  verifies('openai-realtime.cancel', 'a cancel ends the response at once and stops the agent', async () => {
    const { agent, stopped } = endless()
    const { url } = await start(agent)
    const wire = await connect(url, words.options)
    wire.send({ type: 'response.create' })
    const { response } = await wire.next('response.created')
    await wire.next(`${words.text}.delta`)
    wire.send({ type: 'response.cancel', response_id: response.id })
    const { response: cancelled } = await wire.next('response.done')
    expect(cancelled).toMatchObject({
      id: response.id,
      status: 'cancelled',
      status_details: { type: 'cancelled', reason: 'client_cancelled' },
      output: [{ status: 'incomplete', content: [{ type: words.textPart, text: expect.stringMatching(/^1 2 3 /) }] }],
    })
    await stopped
    const ending = [
      `${words.text}.done`,
      'response.content_part.done',
      'response.output_item.done',
      ...words.added.slice(1),
      'response.done',
    ]
    expect(typesOf(wire.heard.slice(-ending.length))).toEqual(ending)
    // Nothing of the cancelled one comes after its end, and the next may begin.
    const at = wire.heard.length
    wire.send({ type: 'response.create' })
    const { response: second } = await wire.next('response.created')
    expect(second.id).not.toBe(response.id)
    expect(wire.heard.slice(at).some((event) => event['response_id'] === response.id)).toBe(false)
  })
})

verifies('openai-realtime.conversation', 'the agent gets the conversation so far', async () => {
  const { url } = await start(demo())
  const wire = await connect(url)
  await wire.respond(says('one'))
  const events = await wire.respond(says('/history'))
  expect(events.at(-1)?.['response'].output[0].content[0].text).toBe('user: one\nassistant: You said: one\nuser: /history')
})

describe('response.create', () => {
  const last = async (wire: Awaited<ReturnType<typeof connect>>, response?: object): Promise<Heard> => {
    wire.send({ type: 'response.create', ...(response && { response }) })
    return wire.next('response.done')
  }

  verifies(['openai-realtime.overrides', 'openai-realtime.metadata'], 'of GA overrides for one response', async () => {
    const { url } = await start(mirror)
    const wire = await connect(url)
    await wire.ask({ type: 'session.update', session: { instructions: 'Always.', output_modalities: ['text'] } }, 'session.updated')
    const done = await last(wire, {
      instructions: 'Once.',
      output_modalities: ['audio'],
      tools: [{ type: 'function', name: 'f' }],
      tool_choice: 'none',
      max_output_tokens: 7,
      metadata: { topic: 'x' },
    })
    expect(done['response']).toMatchObject({ output_modalities: ['audio'], max_output_tokens: 7, metadata: { topic: 'x' } })
    expect(mirrored(done).config).toMatchObject({
      instructions: 'Once.',
      modalities: ['audio', 'text'],
      tools: [{ type: 'function', function: { name: 'f' } }],
      extensions: { openai: { tool_choice: 'none', max_output_tokens: 7, metadata: { topic: 'x' } } },
    })
    const after = await last(wire)
    expect(after['response']).toMatchObject({ output_modalities: ['text'], max_output_tokens: 'inf', metadata: null })
    expect(mirrored(after).config).toMatchObject({ instructions: 'Always.', modalities: ['text'], tools: [] })
  })

  verifies('openai-realtime.overrides', 'of the beta overrides for one response', async () => {
    const { url } = await start(mirror)
    const wire = await connect(url, DIALECTS.beta.options)
    const done = await last(wire, { instructions: 'Once.', modalities: ['text'], max_output_tokens: 7, temperature: 0.7, voice: 'nova' })
    expect(done['response']).toMatchObject({ modalities: ['text'], max_output_tokens: 7, temperature: 0.7, voice: 'nova' })
    expect(mirrored(done).config).toMatchObject({
      instructions: 'Once.',
      extensions: { openai: { max_output_tokens: 7, temperature: 0.7 } },
    })
  })

  verifies(['openai-realtime.out-of-band', 'openai-realtime.input'], 'outside of the conversation, with an input of its own', async () => {
    const { url } = await start(mirror)
    const wire = await connect(url)
    const { item } = await wire.ask(says('in the conversation'), 'conversation.item.done')
    const from = wire.heard.length
    const done = await last(wire, {
      conversation: 'none',
      output_modalities: ['text'],
      input: [
        { type: 'item_reference', id: item.id },
        { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'beside it' }] },
      ],
    })
    expect(done['response'].conversation_id).toBe(null)
    expect(mirrored(done).messages.map(({ content }) => content)).toEqual(['in the conversation', 'beside it'])
    expect(wire.heard.slice(from).some(({ type }) => type.startsWith('conversation.'))).toBe(false)
    expect(mirrored(await last(wire)).messages.map(({ content }) => content)).toEqual(['in the conversation'])
    expect(mirrored(await last(wire, { input: [] })).messages).toEqual([])
    wire.send({ type: 'response.create', event_id: 'e1', response: { input: [{ type: 'item_reference', id: 'nothing' }] } })
    expect((await wire.next('error'))['error']).toMatchObject({ event_id: 'e1', code: 'item_retrieve_invalid_item_id' })
  })

  verifies('openai-realtime.active', 'while one is active is refused, and the active one goes on', async () => {
    const { url } = await start(endless().agent)
    const wire = await connect(url)
    wire.send({ type: 'response.create' })
    await wire.next('response.output_text.delta')
    wire.send({ type: 'response.create', event_id: 'second' })
    const { error } = await wire.next('error')
    expect(error).toMatchObject({ type: 'invalid_request_error', code: 'conversation_already_has_active_response', event_id: 'second' })
    await wire.next('response.output_text.delta')
  })

  verifies('openai-realtime.cancel-none', 'a cancel of nothing, or of another response, is an error', async () => {
    const { url } = await start(endless().agent)
    const wire = await connect(url)
    wire.send({ type: 'response.cancel', event_id: 'e1' })
    expect((await wire.next('error'))['error']).toMatchObject({ code: 'response_cancel_not_active', event_id: 'e1' })
    wire.send({ type: 'response.create' })
    await wire.next('response.output_text.delta')
    wire.send({ type: 'response.cancel', event_id: 'e2', response_id: 'resp_other' })
    expect((await wire.next('error'))['error']).toMatchObject({ code: 'response_cancel_not_active', event_id: 'e2' })
    await wire.next('response.output_text.delta')
  })
})

describe('a response ends', () => {
  const end = async (agent: AgentPort): Promise<Heard> =>
    (await (await connect((await start(agent)).url)).respond(says('go'))).at(-1) as Heard

  verifies('openai-realtime.failed', 'as failed', async () => {
    const done = await end(scripted([text('I'), { type: 'response.error', error: { code: 'rate_limited', message: 'Too much' } }]))
    expect(done['response']).toMatchObject({
      status: 'failed',
      status_details: { type: 'failed', error: { type: 'rate_limit_error', code: 'rate_limit_exceeded', message: 'Too much' } },
      output: [{ status: 'incomplete', content: [{ text: 'I' }] }],
    })
    const thrown = defineAgent('thrower', async function* () {
      yield text('x')
      throw new Error('secret')
    })
    expect((await end(thrown))['response'].status_details.error).toEqual({
      type: 'server_error',
      code: 'server_error',
      message: 'Internal error',
      request_id: expect.stringMatching(/^req_/) as string,
    })
  })

  verifies('openai-realtime.incomplete', 'as incomplete', async () => {
    for (const [stop_reason, reason] of [
      ['length', 'max_output_tokens'],
      ['content_filter', 'content_filter'],
    ] as const) {
      const response = { id: 'x', status: 'completed' as const, output: [], extensions: { uamp: { stop_reason } } }
      const done = await end(scripted([text('I was'), { type: 'response.done', response }]))
      expect(done['response']).toMatchObject({
        status: 'incomplete',
        status_details: { type: 'incomplete', reason },
        output: [{ status: 'incomplete' }],
      })
    }
  })

  verifies('openai-realtime.signature', 'with its signature', async () => {
    const response = { id: 'x', status: 'completed' as const, output: [] }
    expect(await end(scripted([text('signed'), { type: 'response.done', response, signature: 'eyJ.a.b' }]))).toMatchObject({
      signature: 'eyJ.a.b',
    })
    expect(await end(scripted([text('unsigned')]))).not.toHaveProperty('signature')
  })
})

verifies('openai-realtime.extras', 'thoughts, progress and media come as the events of UAMP', async () => {
  const { url } = await start(
    scripted([
      { type: 'thinking', content: 'hm', is_delta: true },
      { type: 'progress', target: 'response', message: 'half' },
      { type: 'response.delta', delta: { type: 'image', image: 'AAAA', content_id: 'c1' } },
      text('done'),
    ]),
  )
  const events = withoutIds(await (await connect(url)).respond())
  expect(events.slice(2, 5)).toEqual([
    { type: 'thinking', response_id: 'resp 1', content: 'hm', is_delta: true },
    { type: 'progress', response_id: 'resp 1', target: 'response', message: 'half' },
    { type: 'response.delta', response_id: 'resp 1', delta: { type: 'image', image: 'AAAA', content_id: 'c1' } },
  ])
})

verifies('openai-realtime.payment-asked', 'a payment is asked for and lets the same response go on', async () => {
  const paid = defineAgent('paid', async function* (turn) {
    const { payment } = await turn.ask('payment.required', { requirements: { amount: '0.01', currency: 'USD' } })
    yield text(`paid by ${payment.scheme}`)
  })
  const server = await startServer(paid)
  const wire = await connect(server.url, { path: '/realtime' })
  wire.send({ type: 'response.create' })
  const { response } = await wire.next('response.created')
  expect(await wire.next('payment.required')).toEqual({
    type: 'payment.required',
    event_id: expect.any(String),
    response_id: response.id,
    requirements: {
      amount: '0.01',
      currency: 'USD',
      schemes: [{ scheme: 'token', network: 'uamp' }],
      expires_at: expect.any(Number),
    },
  })
  wire.send({ type: 'payment.submit', payment: { scheme: 'token', token: await coin(server, '1') } })
  expect(await wire.next('payment.accepted')).toMatchObject({ response_id: response.id, balance_remaining: '0.99' })
  expect((await wire.next('response.done'))['response']).toMatchObject({
    id: response.id,
    status: 'completed',
    output: [{ content: [{ text: 'paid by token' }] }],
  })
  wire.send({ type: 'payment.submit', event_id: 'e1', payment: { scheme: 'token' } })
  expect((await wire.next('error'))['error']).toMatchObject({ event_id: 'e1' })
})
