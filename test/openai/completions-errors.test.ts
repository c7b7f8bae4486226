import { once } from 'node:events'
import { connect } from 'node:net'
import { describe, expect, test } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { text } from '../../src/core/agent-kit/drafts.ts'
import { coin } from '../support/money.ts'
import { scripted } from '../support/agents.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'
import { ask, joined, stream, user, type Wire } from './support.ts'

const PATH = '/v1/chat/completions'
const call = (id: string) => ({ id, type: 'function', function: { name: 'f', arguments: '{}' } })

describe('bad input', () => {
  /** A body, and the status, `code` and `param` it is refused with. */
  const rows: [name: string, body: unknown, status: number, code: string, param: string | null][] = [
    ['no messages', { messages: [] }, 400, 'invalid_value', 'messages'],
    ['messages missing', { model: 'demo' }, 400, 'missing_required_parameter', 'messages'],
    ['an unknown role', { messages: [{ role: 'robot', content: 'x' }] }, 400, 'invalid_value', 'messages[0].role'],
    ['content that is a number', { messages: [user('x'), user(5)] }, 400, 'invalid_value', 'messages[1].content'],
    ['content that is missing', { messages: [{ role: 'user' }] }, 400, 'invalid_value', 'messages[0].content'],
    ['an unknown part', { messages: [user([{ type: 'smell' }])] }, 400, 'invalid_value', 'messages[0].content[0].type'],
    [
      'an image that is no URL',
      { messages: [user([{ type: 'image_url', image_url: { url: 'cat.jpg' } }])] },
      400,
      'invalid_image_url',
      'messages[0].content[0].image_url.url',
    ],
    [
      'a broken data URL',
      { messages: [user([{ type: 'image_url', image_url: { url: 'data:image/png;base64,***' } }])] },
      400,
      'invalid_base64',
      'messages[0].content[0].image_url.url',
    ],
    [
      'audio that is not base64',
      { messages: [user([{ type: 'input_audio', input_audio: { data: '%%', format: 'wav' } }])] },
      400,
      'invalid_base64',
      'messages[0].content[0].input_audio.data',
    ],
    [
      'a file by id',
      { messages: [user([{ type: 'file', file: { file_id: 'f1' } }])] },
      400,
      'file_not_found',
      'messages[0].content[0].file.file_id',
    ],
    [
      'a tool message without its call',
      { messages: [{ role: 'tool', tool_call_id: 'c1', content: 'x' }] },
      400,
      'unknown_tool_call',
      'messages[0].tool_call_id',
    ],
    [
      'two calls with one id',
      { messages: [{ role: 'assistant', content: null, tool_calls: [call('c1'), call('c1')] }] },
      400,
      'duplicate_tool_call',
      'messages[0].tool_calls[1].id',
    ],
    ['a stream that is "yes"', { messages: [user('x')], stream: 'yes' }, 400, 'invalid_type', 'stream'],
    [
      'a tool with a bad name',
      { messages: [user('x')], tools: [{ type: 'function', function: { name: 'a b' } }] },
      400,
      'invalid_value',
      'tools[0].function.name',
    ],
    ['a temperature in words', { messages: [user('x')], temperature: 'hot' }, 400, 'invalid_type', 'temperature'],
    ['half a choice', { messages: [user('x')], n: 1.5 }, 400, 'invalid_type', 'n'],
    ['truncated JSON', '{"messages":[{"role":"us', 400, 'invalid_json', null],
    ['not an object', '[]', 400, 'invalid_type', null],
    ['nothing', '', 400, 'invalid_json', null],
    ['a bottomless body', `${'['.repeat(5000)}${']'.repeat(5000)}`, 400, 'invalid_value', null],
  ]
  for (const [name, body, status, code, param] of rows) {
    verifies(['openai-completions.error-shape', 'openai-completions.error-param'], name, async () => {
      const { url } = await startServer(demo())
      const answer = await ask(url + PATH, body)
      expect(answer.status).toBe(status)
      expect(answer.body).toEqual({ error: { message: expect.any(String), type: 'invalid_request_error', code, param } })
      expect(answer.headers.get('x-request-id')).toMatch(/^req_/)
      // Nobody else is touched.
      expect((await ask(url + PATH, { messages: [user('Hi')] })).body.choices[0].message.content).toBe('You said: Hi')
    })
  }

  test('refusals that the server makes have the same shape', async () => {
    const { url } = await startServer(demo(), {
      tokens: { alice: 'secret-0123456789abcdef' },
      allowAnonymous: false,
      limits: { bodyBytes: 1000 },
    })
    const key = { authorization: 'Bearer secret-0123456789abcdef' }
    const shape = { message: expect.any(String), type: 'invalid_request_error', code: expect.any(String), param: null }
    const cases: [Promise<{ status: number; body: Wire }>, number, string][] = [
      [ask(url + PATH, { messages: [user('x')] }), 401, 'invalid_api_key'],
      [ask(url + PATH, { messages: [user('x')] }, { authorization: 'Bearer wrong' }), 401, 'invalid_api_key'],
      [ask(`${url}/agents/nobody${PATH}`, { messages: [user('x')] }, key), 404, 'model_not_found'],
      [ask(url + PATH, { messages: [user('x'.repeat(2000))] }, key), 413, 'request_too_large'],
      [get(`${url}/v1/responses`), 405, 'invalid_value'],
    ]
    for (const [answer, status, code] of cases) expect(await answer).toMatchObject({ status, body: { error: { ...shape, code } } })
  })

  test('a body of 50 MB is refused before it is read', async () => {
    const { url, port } = await startServer(demo())
    const socket = connect(port, '127.0.0.1')
    socket.write(
      `POST ${PATH} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 50000000\r\n\r\n{"messages":`,
    )
    const [head] = (await once(socket, 'data')) as [Buffer]
    expect(head.toString()).toMatch(/^HTTP\/1.1 413 /)
    expect(head.toString()).toContain('"code":"request_too_large"')
    socket.destroy()
    expect((await ask(url + PATH, { messages: [user('Hi')] })).status).toBe(200)
  })
})

verifies(['openai-completions.preflight', 'openai-completions.should-retry'], 'what fails before the first chunk is a status', async () => {
  const { url } = await startServer(demo())
  for (const streamed of [true, false]) {
    const failed = await ask(url + PATH, { messages: [user('/error provider_error')], stream: streamed })
    expect([failed.status, failed.body.error.type, failed.headers.get('x-should-retry')]).toEqual([502, 'server_error', 'false'])
    const limited = await ask(url + PATH, { messages: [user('/error rate_limited')], stream: streamed })
    expect([limited.status, limited.headers.get('x-should-retry')]).toEqual([429, null])
  }
  const slow = await startServer(demo(), { limits: { requestBurst: 1, requestsPerSecond: 0.5 } })
  await ask(slow.url + PATH, { messages: [user('x')] })
  const refused = await ask(slow.url + PATH, { messages: [user('x')] })
  expect(refused).toMatchObject({ status: 429, body: { error: { type: 'rate_limit_error', code: 'rate_limit_exceeded' } } })
  expect(Number(refused.headers.get('retry-after-ms'))).toBeGreaterThan(500)
  expect(refused.headers.get('retry-after')).toBe('2')
})

verifies('openai-completions.stream-error', 'what fails later is an error in the stream', async () => {
  const { url } = await startServer(
    scripted([text('Once'), { type: 'response.error', error: { code: 'provider_error', message: 'Gone' } }]),
  )
  const { chunks, data } = await stream(url + PATH, { messages: [user('x')] })
  expect(joined(chunks.slice(0, -1), 'content')).toBe('Once')
  expect(chunks.at(-1)).toEqual({ error: { message: 'Gone', type: 'server_error', code: 'provider_error', param: null } })
  expect(data.at(-1)).toBe('[DONE]')
})

verifies('openai-completions.headers', 'headers beside every answer', async () => {
  const { url } = await startServer(demo(), { limits: { requestBurst: 10, requestsPerSecond: 0.001 } })
  const { headers } = await ask(url + PATH, { messages: [user('x')] })
  expect(headers.get('x-request-id')).toMatch(/^req_/)
  expect([headers.get('x-ratelimit-limit-requests'), headers.get('x-ratelimit-remaining-requests')]).toEqual(['10', '9'])
  expect(headers.get('x-ratelimit-reset-requests')).toMatch(/^\d+ms$/)
})

verifies('openai-completions.payment-asked', 'payment before the first chunk is 402, and X-PAYMENT pays', async () => {
  const shop = defineAgent('shop', async function* (turn) {
    const requirements = { amount: '0.01', currency: 'USD', schemes: [{ scheme: 'token', network: 'test' }] }
    const { payment } = await turn.ask('payment.required', { requirements })
    yield text(`Paid with a ${payment.scheme}`)
  })
  const server = await startServer(shop)
  const { url } = server
  for (const streamed of [true, false]) {
    const unpaid = await ask(url + PATH, { messages: [user('x')], stream: streamed })
    const accepts = [{ scheme: 'token', network: 'test', amount: '0.01', currency: 'USD' }]
    expect(unpaid).toMatchObject({
      status: 402,
      body: { error: { type: 'payment_required', code: 'payment_required', param: null, accepts }, status_code: 402, context: { accepts } },
    })
  }
  const paid = await ask(url + PATH, { messages: [user('x')] }, { 'x-payment': await coin(server, '0.01') })
  expect(paid.body.choices[0].message.content).toBe('Paid with a token')
  const { chunks } = await stream(url + PATH, { messages: [user('x')] }, { 'payment-signature': await coin(server, '0.01') })
  expect(joined(chunks, 'content')).toBe('Paid with a token')
  const two = await ask(url + PATH, { messages: [user('x')] }, { 'x-payment': 'a', 'payment-signature': 'b' })
  expect(two.status).toBe(400)
})

test('payment in the middle of a stream is an error in it', async () => {
  const shop = defineAgent('shop', async function* (turn) {
    yield text('The first part. ')
    await turn.ask('payment.required', { requirements: { amount: '1', currency: 'USD' } })
    yield text('never')
  })
  const { url } = await startServer(shop)
  const { chunks, data } = await stream(url + PATH, { messages: [user('x')] })
  expect(joined(chunks.slice(0, -1), 'content')).toBe('The first part. ')
  expect(chunks.at(-1)).toMatchObject({ error: { code: 'payment_required', accepts: [{ scheme: 'token', amount: '1.00' }] } })
  expect(data.at(-1)).toBe('[DONE]')
  expect((await ask(url + PATH, { messages: [user('x')] })).status).toBe(402)
})

verifies('openai-completions.signature', 'where a signature stands', async () => {
  const response = { id: '', status: 'completed' as const, output: [] }
  const { url } = await startServer(scripted([text('Signed.'), { type: 'response.done', response, signature: 'eyJ' }]))
  expect((await ask(url + PATH, { messages: [user('x')] })).body.signature).toBe('eyJ')
  const usual = await stream(url + PATH, { messages: [user('x')], stream_options: { include_usage: true } })
  expect(usual.chunks.at(-1)).toMatchObject({ object: 'chat.completion.chunk', choices: [], signature: 'eyJ' })
  expect(usual.data.at(-1)).toBe('[DONE]')
  const last = await stream(url + PATH, { messages: [user('x')] }, { 'x-uamp-signature': 'event' })
  expect(last.raw.endsWith('data: [DONE]\n\nevent: response_signature\ndata: {"signature":"eyJ"}\n\n')).toBe(true)
})

verifies('openai-completions.gone', 'a client that leaves stops the agent, streamed or not', async () => {
  for (const streamed of [true, false]) {
    const { agent, started, stopped } = speaker()
    const { url } = await startServer(agent)
    const controller = new AbortController()
    const body = JSON.stringify({ messages: [user('x')], stream: streamed })
    const request = fetch(url + PATH, { method: 'POST', body, signal: controller.signal })
    if (streamed) await (await request).body?.getReader().read()
    await started
    controller.abort()
    await request.catch(() => undefined)
    await stopped
  }
})

verifies('openai-completions.store', 'what is stored is found again', async () => {
  const { url, gateway } = await startServer(demo())
  await ask(url + PATH, { messages: [user('Remember me')], store: true })
  await ask(url + PATH, { messages: [user('Forget me')] })
  const { items } = await gateway.list({ tenant: 'default', id: 'anonymous', scopes: ['*'] }, {})
  expect(items).toHaveLength(1)
  const session = await gateway.attach(items[0]?.id ?? '', { tenant: 'default', id: 'anonymous', scopes: ['*'] })
  expect(session?.agent).toBe('demo')
})

async function get(url: string): Promise<{ status: number; body: Wire }> {
  const response = await fetch(url)
  return { status: response.status, body: await response.json() }
}

/** Speaks for ever, and never waits longer than a turn of the event loop. */
function speaker() {
  let begin = (): void => undefined
  let stop = (): void => undefined
  const started = new Promise<void>((resolve) => (begin = resolve))
  const stopped = new Promise<void>((resolve) => (stop = resolve))
  const agent = defineAgent('speaker', async function* () {
    begin()
    try {
      for (;;) {
        yield text('and ')
        await new Promise((resolve) => setImmediate(resolve))
      }
    } finally {
      stop()
    }
  })
  return { agent, started, stopped }
}
