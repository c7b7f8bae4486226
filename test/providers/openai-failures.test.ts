import { describe, expect, test } from 'vitest'
import { openai } from '../../src/providers/openai/index.ts'
import { nodeHttp } from '../../src/server/node/http-client.ts'
import { verifies } from '../support/verifies.ts'
import { ask, toRequest } from './ask.ts'
import { streamOf } from './scripted.ts'
import { BAD_KEY, startUpstream, type Upstream } from './upstream/index.ts'

const PLAIN = 'gpt-4.1-mini'

const gpt = ({ url }: Upstream, apiKey = 'key') => openai({ apiKey, baseUrl: `${url}/openai/v1`, retries: 0 })

describe('what goes wrong', () => {
  verifies('openai-model.errors', 'is an error with the words of OpenAI', async () => {
    const upstream = await startUpstream()
    const errors = []
    for (const scenario of [
      'error-400',
      'error-401',
      'error-404',
      'error-429',
      'error-500',
      'html-200',
      'error-in-200',
      'not-json',
      'empty',
    ]) {
      errors.push((await ask(gpt(upstream), { model: `${PLAIN}@${scenario}`, messages: 'Hi' })).error?.code)
    }
    expect(errors).toEqual([
      'invalid_request',
      'provider_error',
      'not_found',
      'rate_limited',
      'provider_error',
      'provider_error',
      'invalid_request',
      'provider_error',
      'provider_error',
    ])
    const { error } = await ask(gpt(upstream, BAD_KEY), { model: `${PLAIN}@text`, messages: 'Hi' })
    expect(error?.message).not.toContain(BAD_KEY)
  })

  test.each([
    ['as an event', { type: 'error', code: 'rate_limit_exceeded', message: 'Slow down', param: null }, 'rate_limited'],
    [
      'inside an event',
      { type: 'error', error: { type: 'invalid_request_error', code: 'context_length_exceeded', message: 'Too long' } },
      'invalid_request',
    ],
    [
      'as the end',
      { type: 'response.failed', response: { status: 'failed', error: { code: 'server_error', message: 'Died' } } },
      'provider_error',
    ],
    ['by a gateway', { error: { message: 'No', type: 'overloaded_error' } }, 'overloaded'],
  ])('is told %s, after what was said', async (_, failure, code) => {
    const upstream = await startUpstream()
    upstream.script('responses', streamOf({ type: 'response.output_text.delta', item_id: 'msg_1', delta: 'So' }, failure))
    expect(await ask(gpt(upstream), { model: PLAIN, messages: 'Hi' })).toMatchObject({ text: 'So', error: { code } })
  })

  verifies('openai-model.cut', 'is a stream that ends too early', async () => {
    const upstream = await startUpstream()
    for (const delivery of ['cut', 'half', 'short', 'failing']) {
      const { error, text } = await ask(gpt(upstream), { model: `${PLAIN}@text+${delivery}`, messages: 'Hi' })
      expect([delivery, error?.code]).toEqual([delivery, delivery === 'failing' ? 'overloaded' : 'provider_error'])
      expect(text).not.toBe('')
    }
  })

  verifies('openai-model.cancel', 'closes the connection when it is a cancel', async () => {
    const upstream = await startUpstream()
    const http = nodeHttp()
    const controller = new AbortController()
    const request = toRequest({ model: `${PLAIN}@text+stall`, messages: 'Hi' })
    const drafts = gpt(upstream).generate(request, { http, signal: controller.signal, sessionId: 's' })[Symbol.asyncIterator]()
    await drafts.next()
    controller.abort()
    await expect(async () => {
      while (!(await drafts.next()).done);
    }).rejects.toThrow()
    await upstream.until(() => upstream.aborts === 1)
    http.close()
  })
})
