import { describe, expect, test } from 'vitest'
import type { Draft } from '../../src/protocol/events.ts'
import { nodeHttp } from '../../src/server/node/http-client.ts'
import { verifies } from '../support/verifies.ts'
import { ask, toRequest } from './ask.ts'
import { some, strict, TOOLS } from './chat.ts'
import { chunk, streamOf } from './scripted.ts'
import { BAD_KEY, startUpstream } from './upstream/index.ts'

const DONE = '[DONE]'

describe('what goes wrong', () => {
  verifies('compatible.errors', 'is an error with the words of the server', async () => {
    const upstream = await startUpstream()
    const codes = [
      'error-400',
      'error-401',
      'error-404',
      'error-429',
      'error-500',
      'error-503',
      'html',
      'html-200',
      'error-in-200',
      'not-json',
      'empty',
    ]
    const errors = []
    for (const model of codes) errors.push((await ask(strict(upstream), { model, messages: 'Hi' })).error?.code)
    expect(errors).toEqual([
      'invalid_request',
      'provider_error',
      'not_found',
      'rate_limited',
      'provider_error',
      'overloaded',
      'provider_error',
      'provider_error',
      'invalid_request',
      'provider_error',
      'provider_error',
    ])
    const { error } = await ask(strict(upstream, { apiKey: BAD_KEY }), { model: 'text', messages: 'Hi' })
    expect(error?.message).not.toContain(BAD_KEY)
  })

  test.each([
    ['in the stream', { error: { message: 'Slow down', type: 'rate_limit_error', code: 'rate_limit_exceeded' } }, 'rate_limited'],
    ['by a number', { error: { message: 'Upstream died', code: 502 } }, 'provider_error'],
    ['as a text', { error: 'out of memory' }, 'provider_error'],
    ['in a choice', { choices: [{ error: { message: 'gone', code: 503 }, finish_reason: 'error' }] }, 'overloaded'],
  ])('is told %s, after what was said', async (_, failure, code) => {
    const upstream = await startUpstream()
    upstream.script('compatible', streamOf(chunk({ content: 'So' }), failure))
    expect(await ask(some(upstream), { model: 'm', messages: 'Hi' })).toMatchObject({ text: 'So', error: { code } })
  })

  verifies('compatible.cut', 'is a stream that ends too early', async () => {
    const upstream = await startUpstream()
    for (const delivery of ['cut', 'half', 'short', 'failing']) {
      const { error, text } = await ask(strict(upstream), { model: `text+${delivery}`, messages: 'Hi' })
      expect([delivery, error?.code]).toEqual([delivery, delivery === 'failing' ? 'overloaded' : 'provider_error'])
      expect(text).not.toBe('')
    }
    upstream.script('compatible', streamOf(chunk({ content: 'So' }), DONE), streamOf(chunk({ content: 'So' }, 'stop')))
    for (const end of ['[DONE]', 'finish_reason']) {
      expect([end, (await ask(some(upstream), { model: 'm', messages: 'Hi' })).error]).toEqual([end, undefined])
    }
  })

  verifies('compatible.retry', 'is tried again before the first chunk only', async () => {
    const upstream = await startUpstream()
    expect((await ask(strict(upstream, { retries: 1 }), { model: 'text+flaky', messages: 'Hi' })).error).toBeUndefined()
    expect(upstream.requests).toHaveLength(2)
    expect((await ask(strict(upstream, { retries: 2 }), { model: 'text+cut', messages: 'Hi' })).error).toBeDefined()
    expect(upstream.requests).toHaveLength(3)
  })

  verifies('compatible.cancel', 'closes the connection, which otherwise is used again', async () => {
    const upstream = await startUpstream()
    const http = nodeHttp()
    const controller = new AbortController()
    const context = { http, signal: controller.signal, sessionId: 's' }
    for (const model of ['text', 'text', 'tools']) {
      const drafts: Draft[] = []
      for await (const draft of some(upstream).generate(toRequest({ model, messages: 'Hi', config: TOOLS }), context)) drafts.push(draft)
      expect(drafts.length).toBeGreaterThan(1)
    }
    expect(upstream.connections).toBeLessThan(3)
    const drafts = some(upstream)
      .generate(toRequest({ model: 'text+stall', messages: 'Hi' }), context)
      [Symbol.asyncIterator]()
    await drafts.next()
    controller.abort()
    await expect(async () => {
      while (!(await drafts.next()).done);
    }).rejects.toThrow()
    await upstream.until(() => upstream.aborts === 1)
    http.close()
  })
})
