import { describe, expect, test } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { text } from '../../src/core/agent-kit/drafts.ts'
import { mirror, scripted } from '../support/agents.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'
import { ask, joined, stream, user, type Wire } from './support.ts'

const PATH = '/v1/chat/completions'
const FUNCTION = { type: 'function', function: { name: 'weather', parameters: { type: 'object' } } }

const finishes = (chunks: readonly Wire[], index = 0): string[] =>
  chunks.flatMap(({ choices }) =>
    choices.filter((choice: Wire) => choice.index === index && choice.finish_reason !== null).map((c: Wire) => c.finish_reason),
  )

describe('what the demo can show, streamed and not', () => {
  /** A command, and what of it a client of this protocol sees. */
  const rows: {
    say: string
    verifies: Parameters<typeof verifies>[0]
    body?: object
    content?: string | null
    field?: [string, string]
    finish?: string
  }[] = [
    { say: 'Hello', verifies: 'openai-completions.object', content: 'You said: Hello' },
    { say: '/count 5', verifies: 'openai-completions.chunk', content: '1 2 3 4 5' },
    {
      say: '/think twice',
      verifies: 'openai-completions.reasoning',
      content: 'I thought about: twice',
      field: ['reasoning_content', 'Someone wants me to think about "twice". I have thought about it.'],
    },
    { say: '/tool add {"a":1,"b":2}', verifies: 'openai-completions.own-tools', content: 'add answered: {"sum":3}' },
    {
      say: '/tool weather {"city":"Bern"}',
      verifies: 'openai-completions.tool-calls',
      body: { tools: [FUNCTION] },
      content: null,
      finish: 'tool_calls',
    },
    { say: '/approve it', verifies: [], content: 'Denied: it (approval_unavailable)' },
    { say: '/progress 2', verifies: [], content: 'Done in 2 steps.' },
    { say: '/image', verifies: 'openai-completions.content-items', content: 'Here is an image.' },
    { say: '/file', verifies: 'openai-completions.content-items', content: 'Here is a file.' },
    { say: '/video', verifies: 'openai-completions.content-items', content: 'Here is a video.' },
    { say: '/audio 1', verifies: 'openai-completions.audio', content: 'A tone of 1 s.' },
    {
      say: '/json',
      verifies: 'openai-completions.format',
      body: { response_format: { type: 'json_object' } },
      content: '{"answer":"demo","ok":true}',
    },
    { say: '/state', verifies: [], content: 'The state went from 0 to 3.' },
    { say: '/history', verifies: [], content: 'user: /history' },
    { say: '/big 100', verifies: [], content: 'x'.repeat(100) },
  ]
  for (const { say, verifies: ids, body = {}, content, field, finish = 'stop' } of rows) {
    verifies(ids, say, async () => {
      const { url } = await startServer(demo())
      const request = { model: 'demo', messages: [user(say)], ...body }
      const { status, body: whole } = await ask(url + PATH, request)
      expect(status).toBe(200)
      expect(whole).toMatchObject({
        object: 'chat.completion',
        model: 'demo',
        id: expect.stringMatching(/^chatcmpl-/),
        created: expect.any(Number),
      })
      expect(whole.choices).toMatchObject([
        { index: 0, logprobs: null, finish_reason: finish, message: { role: 'assistant', content, refusal: null } },
      ])
      if (field) expect(whole.choices[0].message[field[0]]).toBe(field[1])
      expect(whole.usage).toMatchObject({ total_tokens: whole.usage.prompt_tokens + whole.usage.completion_tokens })

      const { chunks, data } = await stream(url + PATH, request)
      expect(data.at(-1)).toBe('[DONE]')
      const [{ id, created }] = chunks
      for (const chunk of chunks) {
        expect(chunk).toMatchObject({ id, created, object: 'chat.completion.chunk', model: 'demo' })
        for (const choice of chunk.choices) expect(Object.keys(choice)).toEqual(['index', 'delta', 'finish_reason'])
      }
      expect(chunks[0].choices[0].delta.role).toBe('assistant')
      expect(joined(chunks, 'content')).toBe(content ?? '')
      if (field) expect(joined(chunks, field[0])).toBe(field[1])
      expect(finishes(chunks)).toEqual([finish])
      expect(chunks.at(-1).choices[0].finish_reason).toBe(finish)
      const kinds = (whole.choices[0].message.content_items ?? []).map((item: Wire) => item.type)
      const streamed = chunks.flatMap((chunk) => chunk.choices[0].delta.content_items ?? []).map((item: Wire) => item.type)
      expect(streamed).toEqual(kinds)
    })
  }

  test.each([
    ['delegate', 501],
    ['error provider_error', 502],
    ['error rate_limited', 429],
    ['error something_else', 500],
  ])('/%s is the status %d, streamed or not', async (command, status) => {
    const { url } = await startServer(demo())
    for (const streamed of [true, false]) {
      const answer = await ask(url + PATH, { messages: [user(`/${command}`)], stream: streamed })
      expect(answer.status).toBe(status)
      expect(Object.keys(answer.body.error)).toEqual(['message', 'type', 'code', 'param'])
    }
  })
})

verifies(
  ['openai-completions.role-first', 'openai-completions.one-finish', 'openai-completions.done'],
  'a transcript of one stream',
  async () => {
    const { url } = await startServer(demo())
    const { raw } = await stream(url + PATH, { messages: [user('/count 2')] })
    const id = /"id":"([^"]+)"/.exec(raw)?.[1]
    const created = /"created":(\d+)/.exec(raw)?.[1]
    const chunk = (delta: string, finish = 'null') =>
      `data: {"id":"${id}","object":"chat.completion.chunk","created":${created},"model":"demo","choices":[{"index":0,"delta":${delta},"finish_reason":${finish}}]}\n\n`
    expect(raw).toBe(
      chunk('{"role":"assistant","content":""}') +
        chunk('{"content":"1"}') +
        chunk('{"content":" 2"}') +
        chunk('{}', '"stop"') +
        'data: [DONE]\n\n',
    )
  },
)

verifies(['openai-completions.usage', 'openai-completions.no-usage'], 'usage where it is asked for', async () => {
  const { url } = await startServer(demo())
  const messages = [user('/count 3')]
  const asked = await stream(url + PATH, { messages, stream_options: { include_usage: true } })
  const last = asked.chunks.at(-1)
  expect(last).toMatchObject({ choices: [], usage: { prompt_tokens: 2, completion_tokens: 3, total_tokens: 5 } })
  expect(asked.chunks.slice(0, -1).every(({ usage }) => usage === null)).toBe(true)
  const { chunks } = await stream(url + PATH, { messages })
  expect(chunks.every((chunk) => !('usage' in chunk))).toBe(true)
})

verifies('openai-completions.accept', 'Accept does not decide', async () => {
  const { url } = await startServer(demo())
  const { chunks } = await stream(url + PATH, { messages: [user('Hi')] }, { accept: 'application/json' })
  expect(joined(chunks, 'content')).toBe('You said: Hi')
  const { body } = await ask(url + PATH, { messages: [user('Hi')] }, { accept: 'text/event-stream' })
  expect(body.choices[0].message.content).toBe('You said: Hi')
})

verifies(
  ['openai-completions.paths', 'openai-completions.model', 'openai-completions.models'],
  'every path, and agents as models',
  async () => {
    const other = defineAgent('org.other', async function* () {
      yield text('other')
    })
    const { url } = await startServer([demo(), other])
    const said = async (path: string, model?: string) => {
      const { body } = await ask(url + path, { messages: [user('Hi')], ...(model !== undefined && { model }) })
      return [body.model, body.choices[0].message.content]
    }
    for (const path of ['/chat/completions', PATH]) {
      expect(await said(path)).toEqual(['demo', 'You said: Hi'])
      expect(await said(path, 'org.other')).toEqual(['org.other', 'other'])
      expect(await said(path, 'gpt-5')).toEqual(['demo', 'You said: Hi'])
      expect(await said(`/agents/org.other${path}`, 'demo')).toEqual(['org.other', 'other'])
    }
    const list = (await (await fetch(`${url}/v1/models`)).json()) as Wire
    expect(list).toMatchObject({ object: 'list', data: [{ id: 'demo', object: 'model', owned_by: 'uamp' }, { id: 'org.other' }] })
    expect(await (await fetch(`${url}/v1/models/org%2Eother`)).json()).toMatchObject({ id: 'org.other', created: expect.any(Number) })
    expect(await (await fetch(`${url}/agents/demo/v1/models`)).json()).toMatchObject({ data: [{ id: 'demo' }] })
    const missing = await fetch(`${url}/v1/models/org%2Fnobody`)
    expect([missing.status, await missing.json()]).toMatchObject([404, { error: { code: 'model_not_found', param: 'model' } }])
  },
)

verifies('openai-completions.capabilities', 'what the agent can do', async () => {
  const { url } = await startServer(demo())
  expect(await (await fetch(`${url}/agents/demo/capabilities`)).json()).toMatchObject({ id: 'demo', supports_streaming: true })
})

verifies('openai-completions.n', 'several choices, each complete', async () => {
  const { url } = await startServer(demo())
  const { body } = await ask(url + PATH, { messages: [user('/count 3')], n: 3 })
  expect(body.choices.map(({ index, message }: Wire) => [index, message.content])).toEqual([0, 1, 2].map((index) => [index, '1 2 3']))
  expect(body.usage.completion_tokens).toBe(9)
  const { chunks, data } = await stream(url + PATH, { messages: [user('/count 300')], n: 2, stream_options: { include_usage: true } })
  for (const index of [0, 1]) {
    expect(joined(chunks, 'content', index).split(' ')).toHaveLength(300)
    expect(finishes(chunks, index)).toEqual(['stop'])
    expect(chunks.find((chunk) => chunk.choices[0]?.index === index)?.choices[0].delta.role).toBe('assistant')
  }
  expect([chunks.at(-1).usage.completion_tokens, data.at(-1)]).toEqual([600, '[DONE]'])
  expect((await ask(url + PATH, { messages: [user('x')], n: 17 })).body.error).toMatchObject({ param: 'n' })
})

verifies('openai-completions.refusal', 'a refusal is not content', async () => {
  const { url } = await startServer(
    scripted([text('Well. '), { type: 'response.delta', delta: { type: 'text', text: 'No.', refusal: true } }]),
  )
  const { body } = await ask(url + PATH, { messages: [user('x')] })
  expect(body.choices[0].message).toMatchObject({ content: 'Well. ', refusal: 'No.' })
  const { chunks } = await stream(url + PATH, { messages: [user('x')] })
  expect([joined(chunks, 'content'), joined(chunks, 'refusal')]).toEqual(['Well. ', 'No.'])
})

verifies('openai-completions.length', 'why it ended', async () => {
  for (const stop_reason of ['length', 'content_filter']) {
    const response = { id: '', status: 'completed' as const, output: [], extensions: { uamp: { stop_reason } } }
    const { url } = await startServer(scripted([text('Once upon'), { type: 'response.done', response }]))
    expect((await ask(url + PATH, { messages: [user('x')] })).body.choices[0].finish_reason).toBe(stop_reason)
    expect(finishes((await stream(url + PATH, { messages: [user('x')] })).chunks)).toEqual([stop_reason])
  }
})

verifies('openai-completions.audio', 'audio for those who ask for it', async () => {
  const { url } = await startServer(demo())
  const audio = (format: string) => ({ messages: [user('/audio 0.2')], modalities: ['text', 'audio'], audio: { voice: 'alloy', format } })
  const { body } = await ask(url + PATH, audio('wav'))
  const { message } = body.choices[0]
  expect(message).toMatchObject({
    content: null,
    audio: { id: expect.any(String), transcript: 'A tone of 0.2 s.', expires_at: expect.any(Number) },
  })
  const file = Buffer.from(message.audio.data, 'base64')
  expect([file.toString('latin1', 0, 4), file.toString('latin1', 8, 12), file.readUInt32LE(24), file.readUInt32LE(40)]).toEqual([
    'RIFF',
    'WAVE',
    24_000,
    9600,
  ])
  expect(file).toHaveLength(44 + 9600)
  const { chunks } = await stream(url + PATH, audio('pcm16'))
  const pieces = chunks.flatMap(({ choices }) => choices[0].delta.audio ?? [])
  expect(pieces[0].id).toEqual(expect.any(String))
  expect(Buffer.concat(pieces.map(({ data = '' }) => Buffer.from(data, 'base64')))).toEqual(file.subarray(44))
  expect(pieces.map(({ transcript = '' }) => transcript).join('')).toBe('A tone of 0.2 s.')
  expect((await ask(url + PATH, { ...audio('wav'), stream: true })).body.error).toMatchObject({ param: 'audio.format' })
  expect((await ask(url + PATH, { messages: [user('x')], modalities: ['audio'] })).body.error).toMatchObject({ param: 'audio' })
})

verifies('openai-completions.settings', 'settings reach the agent, known or not', async () => {
  const { url } = await startServer(mirror)
  const settings = {
    model: 'gpt-5',
    temperature: 0.7,
    max_tokens: 5,
    max_completion_tokens: 6,
    reasoning_effort: 'low',
    seed: 7,
    logit_bias: null,
    made_up: { x: 1 },
  }
  const { body } = await ask(url + PATH, { messages: [user('x')], ...settings, response_format: { type: 'json_object' } })
  const { config } = JSON.parse(body.choices[0].message.content)
  expect(config).toMatchObject({ modalities: ['text'], response_format: { type: 'json_object' }, extensions: { openai: settings } })
})
