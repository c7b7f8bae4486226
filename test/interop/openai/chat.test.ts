import { describe, expect, test } from 'vitest'
import * as z from 'zod'
import { demo } from '../../../src/agents/demo/index.ts'
import { defineAgent } from '../../../src/core/agent-kit/define-agent.ts'
import { text } from '../../../src/core/agent-kit/drafts.ts'
import type { AgentPort } from '../../../src/core/ports/agent.ts'
import { startServer } from '../../support/server.ts'
import { clientOf, collect, user, versions } from './clients.ts'

/** Declines, in two pieces. */
const prim = defineAgent('prim', async function* () {
  for (const piece of ['No', '.']) yield { type: 'response.delta', delta: { type: 'text', text: piece, refusal: true } }
})

const metered = defineAgent('metered', async function* () {
  yield text('Hello')
  yield { type: 'usage.delta', delta: { input_tokens: 12, output_tokens: 3, cache_read: 4, reasoning: 2 } }
})

/** Why an agent stopped is its own to say. */
const cutShort = defineAgent('cut-short', async function* () {
  yield text('{"answer":')
  yield { type: 'response.done', response: { id: '', status: 'completed', output: [], extensions: { uamp: { stop_reason: 'length' } } } }
})

const signed = defineAgent('signed', async function* () {
  yield text('My word')
  yield { type: 'response.done', response: { id: '', status: 'completed', output: [] }, signature: 'eyJhbGci.sig' }
})

const Weather = z.object({ city: z.string(), degrees: z.number(), sky: z.enum(['clear', 'cloudy']) })

describe.each(versions)('openai $version', (version) => {
  const connect = async (...agents: readonly AgentPort[]) => {
    const { url } = await startServer([demo(), ...agents])
    return clientOf(version, url)
  }

  test('create: one answer, with all that the types promise', async () => {
    const { openai } = await connect()
    const completion = await openai.chat.completions.create(user('Hello there'))
    expect(completion).toMatchObject({
      id: expect.stringMatching(/^chatcmpl-/),
      object: 'chat.completion',
      created: expect.closeTo(Date.now() / 1000, -2),
      model: 'demo',
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: 'You said: Hello there', refusal: null },
          logprobs: null,
          finish_reason: 'stop',
        },
      ],
      usage: { prompt_tokens: expect.any(Number), completion_tokens: expect.any(Number), total_tokens: expect.any(Number) },
    })
    expect(completion.choices[0]?.message.tool_calls).toBeUndefined()
    expect(completion._request_id).toEqual(expect.any(String))
  })

  test('create, streamed: the role first, then the text, one reason to finish, and one id', async () => {
    const { openai } = await connect()
    const chunks = await collect(await openai.chat.completions.create({ ...user('/count 5'), stream: true }))
    expect(chunks[0]?.choices[0]?.delta.role).toBe('assistant')
    expect(chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join('')).toBe('1 2 3 4 5')
    expect(chunks.flatMap(({ choices }) => choices[0]?.finish_reason ?? [])).toEqual(['stop'])
    expect(chunks.at(-1)?.choices[0]?.finish_reason).toBe('stop')
    expect(new Set(chunks.map(({ id, object, model, created }) => `${id} ${object} ${model} ${created}`)).size).toBe(1)
    for (const chunk of chunks) expect(chunk).toMatchObject({ object: 'chat.completion.chunk', choices: [{ index: 0, delta: {} }] })
    expect(chunks.some(({ usage }) => usage != null)).toBe(false)
  })

  test('.stream(): events on the way, and the whole at the end', async () => {
    const { openai } = await connect()
    const stream = openai.chat.completions.stream(user('/count 5'))
    const heard: string[] = []
    const snapshots: string[] = []
    stream.on('connect', () => heard.push('connect'))
    stream.on('content', (delta, snapshot) => void (heard.push(delta), snapshots.push(snapshot)))
    stream.on('content.done', ({ content }) => heard.push(`done: ${content}`))
    stream.on('end', () => heard.push('end'))
    const completion = await stream.finalChatCompletion()
    expect(completion.choices).toMatchObject([{ finish_reason: 'stop', message: { role: 'assistant', content: '1 2 3 4 5' } }])
    expect(await stream.finalContent()).toBe('1 2 3 4 5')
    expect(await stream.finalMessage()).toMatchObject({ role: 'assistant', content: '1 2 3 4 5' })
    await stream.done()
    expect(heard[0]).toBe('connect')
    expect(heard.slice(-2)).toEqual(['done: 1 2 3 4 5', 'end'])
    expect(snapshots.at(-1)).toBe('1 2 3 4 5')
  })

  test('include_usage: one more chunk, without choices, before the end', async () => {
    const { openai } = await connect(metered)
    const request = { ...user('Hi'), model: 'metered', stream_options: { include_usage: true } }
    const chunks = await collect(await openai.chat.completions.create({ ...request, stream: true }))
    const usage = {
      prompt_tokens: 12,
      completion_tokens: 3,
      total_tokens: 15,
      prompt_tokens_details: { cached_tokens: 4 },
      completion_tokens_details: { reasoning_tokens: 2 },
    }
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage })
    for (const chunk of chunks.slice(0, -1)) expect(chunk.usage ?? null).toBeNull()
    const stream = openai.chat.completions.stream(request)
    expect(await stream.totalUsage()).toMatchObject({ prompt_tokens: 12, completion_tokens: 3, total_tokens: 15 })
    expect((await stream.finalChatCompletion()).usage).toMatchObject(usage)
    expect((await openai.chat.completions.create({ ...user('Hi'), model: 'metered' })).usage).toMatchObject(usage)
  })

  test('the history reaches the agent, whatever the roles', async () => {
    const { openai } = await connect()
    const completion = await openai.chat.completions.create({
      model: 'demo',
      messages: [
        { role: 'developer', content: 'Be brief' },
        { role: 'user', content: [{ type: 'text', text: 'One' }] },
        { role: 'assistant', content: 'Uno' },
        { role: 'user', content: '/history' },
      ],
    })
    expect(completion.choices[0]?.message.content).toMatch(/user: One\nassistant: Uno\nuser: \/history$/)
  })

  test('n: as many answers, each whole', async () => {
    const { openai } = await connect()
    const request = { ...user('/count 3'), n: 2 }
    const whole = await openai.chat.completions.create(request)
    const streamed = await openai.chat.completions.stream(request).finalChatCompletion()
    for (const { choices } of [whole, streamed]) {
      expect(choices).toMatchObject([
        { index: 0, finish_reason: 'stop', message: { content: '1 2 3' } },
        { index: 1, finish_reason: 'stop', message: { content: '1 2 3' } },
      ])
    }
  })

  test('thoughts are reasoning_content, beside the content', async () => {
    const { openai } = await connect()
    const thought = 'Someone wants me to think about "life". I have thought about it.'
    const { choices } = await openai.chat.completions.create(user('/think life'))
    expect(choices[0]?.message).toMatchObject({ reasoning_content: thought, content: 'I thought about: life' })
    const chunks = await collect(await openai.chat.completions.create({ ...user('/think life'), stream: true }))
    const deltas = chunks.flatMap((chunk) => chunk.choices.map(({ delta }) => delta as { content?: string; reasoning_content?: string }))
    expect(deltas.map((delta) => delta.reasoning_content ?? '').join('')).toBe(thought)
    expect(deltas.map((delta) => delta.content ?? '').join('')).toBe('I thought about: life')
  })

  test('a refusal is not content', async () => {
    const { openai } = await connect(prim)
    const request = { ...user('Do it'), model: 'prim' }
    expect((await openai.chat.completions.create(request)).choices[0]?.message).toMatchObject({ content: null, refusal: 'No.' })
    const stream = openai.chat.completions.stream(request)
    const refusals: string[] = []
    stream.on('refusal.delta', ({ delta }) => refusals.push(delta))
    const { content, refusal } = await stream.finalMessage()
    // 7 makes an empty text of what is not there.
    expect([content || null, refusal]).toEqual([null, 'No.'])
    expect(refusals.join('')).toBe('No.')
    const parsed = await openai.chat.completions.parse({ ...request, response_format: version.zodResponseFormat(Weather, 'weather') })
    expect(parsed.choices[0]?.message).toMatchObject({ parsed: null, refusal: 'No.' })
  })

  test('parse: the answer has the form that was asked for', async () => {
    const { openai } = await connect()
    const request = { ...user('/json'), response_format: version.zodResponseFormat(Weather, 'weather') }
    const completion = await openai.chat.completions.parse(request)
    const expected = { city: 'text', degrees: 0.5, sky: 'clear' }
    expect(completion.choices[0]?.message.parsed).toEqual(expected)
    const streamed = await openai.chat.completions.stream(request).finalChatCompletion()
    expect(streamed.choices[0]?.message.parsed).toEqual(expected)
    const plain = await openai.chat.completions.create({ ...user('/json'), response_format: { type: 'json_object' } })
    expect(JSON.parse(plain.choices[0]?.message.content ?? '')).toEqual({ answer: 'demo', ok: true })
  })

  test('an answer that was cut short is known as such', async () => {
    const { openai } = await connect(cutShort)
    const request = { ...user('/json'), model: 'cut-short' }
    expect((await openai.chat.completions.create(request)).choices[0]?.finish_reason).toBe('length')
    const parsed = openai.chat.completions.parse({ ...request, response_format: version.zodResponseFormat(Weather, 'weather') })
    await expect(parsed).rejects.toThrow('length limit was reached')
  })

  test('a signature comes with the stream, and with what is made of it', async () => {
    const { openai } = await connect(signed)
    const request = { ...user('Hi'), model: 'signed' }
    const chunks = await collect(await openai.chat.completions.create({ ...request, stream: true }))
    expect(chunks.at(-1)).toMatchObject({ choices: [], signature: 'eyJhbGci.sig' })
    expect(await openai.chat.completions.stream(request).finalChatCompletion()).toMatchObject({ signature: 'eyJhbGci.sig' })
    expect(await openai.chat.completions.create(request)).toMatchObject({ signature: 'eyJhbGci.sig' })
  })

  test('the headers tell the id of the request and what is left of the quota', async () => {
    const { openai } = await connect()
    for (const stream of [false, true]) {
      const { data, response, request_id } = await openai.chat.completions.create({ ...user('Hi'), stream }).withResponse()
      expect(request_id).toMatch(/^req_/)
      expect(Number(response.headers.get('x-ratelimit-limit-requests'))).toBeGreaterThan(0)
      expect(Number(response.headers.get('x-ratelimit-remaining-requests'))).toBeGreaterThan(0)
      expect(response.headers.get('x-ratelimit-reset-requests')).toMatch(/^\d+ms$/)
      if (Symbol.asyncIterator in data) expect(await collect(data)).not.toHaveLength(0)
    }
  })

  test('fields that the server does not know, and those of other models, do no harm', async () => {
    const { openai } = await connect()
    const completion = await openai.chat.completions.create({
      ...user('Hi'),
      max_completion_tokens: 100,
      max_tokens: 100,
      temperature: 0.2,
      top_p: 0.9,
      seed: 7,
      stop: ['\n\n'],
      user: 'u',
      metadata: { a: 'b' },
      service_tier: 'auto',
      reasoning_effort: 'low',
      verbosity: 'low',
      prompt_cache_key: 'k',
      safety_identifier: 's',
      logit_bias: { '50256': -100 },
      parallel_tool_calls: false,
      ...{ brand_new: { thing: [1] } },
    })
    expect(completion.choices[0]?.message.content).toBe('You said: Hi')
  })

  test('models: every agent is one, also by a name with dots', async () => {
    const { openai } = await connect(defineAgent('org.alice.my-bot', metered.run))
    const models = await openai.models.list()
    expect(models.data).toMatchObject([
      { id: 'demo', object: 'model', created: expect.any(Number), owned_by: expect.any(String) },
      { id: 'org.alice.my-bot', object: 'model' },
    ])
    expect(await collect(models)).toHaveLength(2)
    expect(await openai.models.retrieve('org.alice.my-bot')).toMatchObject({ id: 'org.alice.my-bot', object: 'model' })
    await expect(openai.models.retrieve('org/alice.my-bot')).rejects.toBeInstanceOf(version.OpenAI.NotFoundError)
    await expect(openai.models.retrieve('nobody')).rejects.toMatchObject({ status: 404, code: 'model_not_found' })
  })

  test('an agent is also found by its path, and the model is then only a name', async () => {
    const { url } = await startServer([demo(), metered])
    for (const at of ['/agents/metered/v1', '/agents/metered']) {
      const { openai } = clientOf(version, url, { at })
      const { choices, model } = await openai.chat.completions.create({ ...user('Hi'), model: 'gpt-6' })
      expect([choices[0]?.message.content, model]).toEqual(['Hello', 'metered'])
    }
    const { openai } = clientOf(version, url, { at: '' })
    expect((await openai.chat.completions.create({ ...user('Hi'), model: 'gpt-6' })).choices[0]?.message.content).toBe('You said: Hi')
  })
})
