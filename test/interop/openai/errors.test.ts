import { describe, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { demo } from '../../../src/agents/demo/index.ts'
import { defineAgent } from '../../../src/core/agent-kit/define-agent.ts'
import { text } from '../../../src/core/agent-kit/drafts.ts'
import type { AgentPort } from '../../../src/core/ports/agent.ts'
import { UampError, type ErrorCode } from '../../../src/protocol/errors.ts'
import { coin } from '../../support/money.ts'
import { startServer } from '../../support/server.ts'
import { clientOf, collect, user, versions, type APIError, type OpenAI, type Version } from './clients.ts'

/** Fails with the code that it is told, before it says anything. */
const failing = defineAgent('failing', async function* ({ messages }) {
  const code = messages.at(-1)?.content ?? ''
  if (code === 'bug') throw new Error('the secret of the house')
  throw new UampError(code as ErrorCode, `It is ${code}`)
})

/** Sells its answer. Counts how often it has begun to work. */
function shop(): { agent: AgentPort; begun: () => number } {
  let begun = 0
  const agent = defineAgent('shop', async function* (turn) {
    const { payment } = await turn.ask('payment.required', {
      requirements: { amount: '0.01', currency: 'USD', schemes: [{ scheme: 'token', network: 'test' }] },
    })
    begun++
    yield text(`Paid with a ${payment.scheme}`)
  })
  return { agent, begun: () => begun }
}

type ErrorClass =
  | 'APIError'
  | 'BadRequestError'
  | 'AuthenticationError'
  | 'PermissionDeniedError'
  | 'NotFoundError'
  | 'ConflictError'
  | 'RateLimitError'
  | 'InternalServerError'

interface Refusal {
  readonly status: number
  readonly kind: ErrorClass
  readonly code: string
  readonly type: string | undefined
}

type Ask = (openai: OpenAI, stream: boolean) => Promise<unknown>

const ask =
  (content: string, model = 'demo'): Ask =>
  async (openai, stream) =>
    stream
      ? collect(await openai.chat.completions.create({ ...user(content), model, stream: true }))
      : openai.chat.completions.create({ ...user(content), model })

/** Asks with a body that the types do not allow. */
const askWith =
  (body: object): Ask =>
  async (openai, stream) =>
    openai.chat.completions.create({ ...user('Hi'), stream, ...body } as OpenAI.ChatCompletionCreateParams)

async function refused(version: Version, url: string, { ask, stream, ...options }: { ask: Ask; stream: boolean; at?: string }) {
  const { openai, attempts } = clientOf(version, url, options)
  const error: APIError = await ask(openai, stream).then(
    () => expect.unreachable('it was not refused'),
    (thrown: APIError) => thrown,
  )
  return { error, attempts: attempts() }
}

const invalid = { status: 400, kind: 'BadRequestError', type: 'invalid_request_error' } as const
const ofServer = (status: number, code: string): Refusal => ({ status, kind: 'InternalServerError', code, type: 'server_error' })

/** One attempt each: what is wrong stays wrong, and an agent that has begun is not to be paid twice. */
const final: readonly (Refusal & { name: string; ask: Ask; at?: string })[] = [
  { name: 'no messages', ask: askWith({ messages: [] }), ...invalid, code: expect.any(String) },
  { name: 'an unknown role', ask: askWith({ messages: [{ role: 'wizard', content: 'x' }] }), ...invalid, code: expect.any(String) },
  { name: 'content of the wrong type', ask: askWith({ messages: [{ role: 'user', content: 7 }] }), ...invalid, code: expect.any(String) },
  {
    name: 'a tool message without its call',
    ask: askWith({
      messages: [
        { role: 'user', content: 'x' },
        { role: 'tool', tool_call_id: 'c', content: 'y' },
      ],
    }),
    ...invalid,
    code: expect.any(String),
  },
  {
    name: 'an agent that is not there',
    ask: ask('Hi'),
    at: '/agents/nobody/v1',
    status: 404,
    kind: 'NotFoundError',
    code: expect.stringMatching(/not_found$/),
    type: 'invalid_request_error',
  },
  {
    name: 'a path that is not there',
    ask: (openai) => openai.files.list(),
    status: 404,
    kind: 'NotFoundError',
    code: 'not_found',
    type: 'invalid_request_error',
  },
  {
    name: 'a body that is too large',
    ask: ask('x'.repeat(5 * 1024 * 1024)),
    status: 413,
    kind: 'APIError',
    code: 'request_too_large',
    type: 'invalid_request_error',
  },
  {
    name: 'forbidden',
    ask: ask('forbidden', 'failing'),
    status: 403,
    kind: 'PermissionDeniedError',
    code: 'permission_denied',
    type: 'invalid_request_error',
  },
  {
    name: 'a conflict',
    ask: ask('conflict', 'failing'),
    status: 409,
    kind: 'ConflictError',
    code: 'conflict',
    type: 'invalid_request_error',
  },
  { name: 'a bug of the agent', ask: ask('bug', 'failing'), ...ofServer(500, 'server_error') },
  { name: 'a failing provider', ask: ask('provider_error', 'failing'), ...ofServer(502, 'provider_error') },
  { name: 'an agent that is overloaded', ask: ask('overloaded', 'failing'), ...ofServer(503, 'overloaded') },
  { name: 'a time-out', ask: ask('timeout', 'failing'), ...ofServer(504, 'timeout') },
  {
    name: 'an error that the agent yields',
    ask: ask('/error conflict'),
    status: 409,
    kind: 'ConflictError',
    code: 'conflict',
    type: 'invalid_request_error',
  },
  { name: 'an error of the agent’s own', ask: ask('/error out_of_coffee'), ...ofServer(500, 'out_of_coffee') },
]

describe.each(versions)('openai $version', (version) => {
  const { OpenAI } = version

  describe.each([
    ['whole', false],
    ['streamed', true],
  ])('%s', (_, stream) => {
    test.each(final)('$name: $status, one attempt', async ({ ask, at, kind, status, code, type }) => {
      const { url } = await startServer([demo(), failing])
      const { error, attempts } = await refused(version, url, { ask, stream, ...(at !== undefined && { at }) })
      expect(error).toBeInstanceOf(OpenAI[kind])
      expect({ status: error.status, code: error.code, type: error.type }).toEqual({ status, code, type })
      if (type !== undefined) expect(error.requestID).toEqual(expect.any(String))
      expect(error.message).not.toContain('secret')
      expect(attempts).toBe(1)
    })

    test('a wrong key: 401, one attempt', async () => {
      const { url } = await startServer(demo(), { tokens: { alice: 'wonderland-0123456789abcdef' } })
      const { error, attempts } = await refused(version, url, { ask: ask('Hi'), stream })
      expect(error).toBeInstanceOf(OpenAI.AuthenticationError)
      expect(error).toMatchObject({ status: 401, code: 'invalid_api_key', type: 'invalid_request_error' })
      expect(attempts).toBe(1)
      const { openai } = clientOf(version, url, { apiKey: 'wonderland-0123456789abcdef' })
      expect(await ask('Hi')(openai, stream)).toBeDefined()
    })

    test('402 says how to pay, is not tried again, and is paid by header', async () => {
      const { agent, begun } = shop()
      const server = await startServer([demo(), agent])
      const { url } = server
      const { error, attempts } = await refused(version, url, { ask: ask('Buy', 'shop'), stream })
      expect(error).toBeInstanceOf(OpenAI.APIError)
      expect(error).toMatchObject({ status: 402, code: 'payment_required', type: 'payment_required', param: null })
      expect(error.error).toMatchObject({ accepts: [{ scheme: 'token', network: 'test', amount: '0.01', currency: 'USD' }] })
      expect([attempts, begun()]).toEqual([1, 0])
      const { openai } = clientOf(version, url, { defaultHeaders: { 'X-PAYMENT': await coin(server, '0.01') } })
      expect(JSON.stringify(await ask('Buy', 'shop')(openai, stream))).toContain('Paid with a token')
      expect(begun()).toBe(1)
    })
  })

  test('a failure after the first words is an error of the stream, and is not tried again', async () => {
    const agent = defineAgent('faltering', async function* () {
      yield text('So far')
      throw new UampError('provider_error', 'The model went away')
    })
    const { url } = await startServer([demo(), agent])
    const { openai, attempts } = clientOf(version, url)
    const request = { ...user('Hi'), model: 'faltering' }
    let heard = ''
    const streamed = (async () => {
      for await (const { choices } of await openai.chat.completions.create({ ...request, stream: true })) {
        heard += choices[0]?.delta.content ?? ''
      }
    })()
    const told = { code: 'provider_error', type: 'server_error', message: expect.stringContaining('The model went away') }
    await expect(streamed).rejects.toMatchObject(told)
    expect(heard).toBe('So far')
    await expect(openai.chat.completions.stream(request).finalChatCompletion()).rejects.toMatchObject(told)
    expect(attempts()).toBe(2)
    await expect(openai.chat.completions.create(request)).rejects.toMatchObject({ status: 502, ...told })
    expect(attempts()).toBe(3)
  })

  test('429 says when to come back, and the client does', async () => {
    let asked = 0
    const busy = defineAgent('busy', async function* () {
      if (++asked === 1) throw new UampError('rate_limited', 'Come back soon', { details: { retry_after: 0.01 } })
      yield text('Here you are')
    })
    const { url } = await startServer(busy)
    const { openai, attempts } = clientOf(version, url)
    expect((await openai.chat.completions.create(user('Hi'))).choices[0]?.message.content).toBe('Here you are')
    expect(attempts()).toBe(2)
    const refusal = await refusedAtOnce(version, { requestBurst: 1, requestsPerSecond: 0.001 })
    expect(refusal).toBeInstanceOf(OpenAI.RateLimitError)
    expect(refusal).toMatchObject({ status: 429, code: 'rate_limit_exceeded', type: 'rate_limit_error' })
    expect(Number(refusal.headers?.get('retry-after-ms'))).toBeGreaterThan(60_000)
    expect(refusal.headers?.get('x-should-retry')).toBeNull()
  })
})

/** What the second request gets, without another try. */
async function refusedAtOnce(version: Version, limits: { requestBurst: number; requestsPerSecond: number }): Promise<APIError> {
  const { url } = await startServer(demo(), { limits })
  const { openai } = clientOf(version, url, { maxRetries: 0 })
  await openai.models.list()
  return openai.chat.completions.create(user('Hi')).then(
    () => expect.unreachable('it was not refused'),
    (thrown: APIError) => thrown,
  )
}

/** At once for all versions, as the clients wait between their attempts. */
test('what was refused before any work is tried three times', async () => {
  const busy = defineAgent('busy', async function* () {
    throw new UampError('rate_limited', 'Come back soon', { details: { retry_after: 0.01 } })
  })
  const limited = await startServer([demo(), busy])
  const full = await startServer(demo(), { limits: { connections: 1 } })
  // Somebody who is let in: a silent connection would make room.
  const taken = new WebSocket(`${full.url.replace('http', 'ws')}/uamp`)
  await new Promise((resolve) => taken.once('open', resolve))
  await Promise.all(
    versions.flatMap((version) => [
      refused(version, limited.url, { ask: ask('Hi', 'busy'), stream: true }).then(({ error, attempts }) => {
        expect(error).toBeInstanceOf(version.OpenAI.RateLimitError)
        expect([error.headers?.get('retry-after-ms'), attempts]).toEqual(['10', 3])
      }),
      refused(version, full.url, { ask: ask('Hi'), stream: false }).then(({ error, attempts }) => {
        expect(error).toBeInstanceOf(version.OpenAI.InternalServerError)
        expect([error.status, attempts]).toEqual([503, 3])
      }),
    ]),
  )
  taken.terminate()
})
