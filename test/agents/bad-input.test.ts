import { describe, expect } from 'vitest'
import { llmAgent, modelOf, type LlmAgentInit } from '../../src/agents/llm/index.ts'
import type { Provider } from '../../src/core/ports/provider.ts'
import type { Tool } from '../../src/core/ports/skill.ts'
import { anthropic } from '../../src/providers/anthropic/index.ts'
import { google } from '../../src/providers/google/index.ts'
import { openai } from '../../src/providers/openai/index.ts'
import { openaiCompatible } from '../../src/providers/openai-compatible/index.ts'
import { ask, user } from '../openai/support.ts'
import { startUpstream, type Upstream } from '../providers/upstream/index.ts'
import { startServer } from '../support/server.ts'
import { say, textOf } from '../support/talk.ts'
import { overWebSocket } from '../support/wire.ts'
import { answering, call, said } from './provider.ts'
import { verifies } from '../support/verifies.ts'

const options = (url: string) => ({ apiKey: 'key', baseUrl: url, retries: 0 })
const PROVIDERS: readonly [string, (upstream: Upstream) => Provider, string][] = [
  ['openai', ({ url }) => openai(options(`${url}/openai/v1`)), 'gpt-4.1@'],
  ['anthropic', ({ url }) => anthropic(options(`${url}/anthropic`)), 'claude-sonnet-4-5@'],
  ['google', ({ url }) => google(options(`${url}/google`)), 'gemini-3-pro@'],
  ['a compatible server', ({ url }) => openaiCompatible({ name: 'mine', ...options(`${url}/compatible/v1`) }), ''],
]

const weather: Tool = { name: 'weather', run: () => 'sunny' }

type Settings = Parameters<typeof startServer>[1] & Partial<Pick<LlmAgentInit, 'maxSteps'>>

async function serve(agent: LlmAgentInit, settings: Settings = {}) {
  const server = await startServer(llmAgent(agent), settings)
  const wire = await overWebSocket(server.url)
  await wire.open()
  const idle = () => expect.poll(() => server.gateway.openResponses, { timeout: 10_000 }).toBe(0)
  const complete = (content: string) => ask(`${server.url}/v1/chat/completions`, { messages: [user(content)] })
  return { ...server, wire, complete, idle }
}

describe.each(PROVIDERS)('a model of %s', (_, make, prefix) => {
  async function start(scenario: string, { maxSteps = 16, ...settings }: Settings = {}) {
    const upstream = await startUpstream()
    const model = modelOf(make(upstream), prefix + scenario)
    return { upstream, ...(await serve({ name: 'bot', model, tools: [weather], maxSteps }, settings)) }
  }

  for (const [what, scenario, code, status] of [
    ['answers with a page', 'html', 'provider_error', 502],
    ['answers with a page as if all were well', 'html-200', 'provider_error', 502],
    ['says 200, and means an error', 'error-in-200', 'invalid_request', 400],
    ['is not known there', 'error-404', 'not_found', 404],
    ['stops in the middle of a chunk', 'text+half', 'provider_error', 502],
  ] as const)
    verifies('model.bad-answer', `that ${what} fails the response, and nothing else`, async () => {
      const { wire, complete, upstream, idle } = await start(scenario)
      const failed = (await say(wire, 'Hello')).at(-1)
      expect(failed).toMatchObject({ type: 'response.error', error: { code } })
      expect(JSON.stringify(failed)).not.toContain('<html')
      // The session goes on, and the next request is asked anew.
      expect((await say(wire, 'Hello?')).at(-1)).toMatchObject({ type: 'response.error', error: { code } })
      expect(await complete('Hello')).toMatchObject({ status, body: { error: { message: expect.any(String) } } })
      expect(upstream.requests).toHaveLength(3)
      await idle()
    })

  for (const scenario of ['comments-only', 'text+endless-comments'])
    verifies('model.comments', `that comments for ever is left when the turn is over: ${scenario}`, async () => {
      const { wire, upstream, idle } = await start(scenario, { limits: { turnTimeoutMs: 300 } })
      expect((await say(wire, 'Hello')).at(-1)).toMatchObject({ type: 'response.error', error: { code: 'timeout' } })
      await upstream.until(() => upstream.aborts === 1)
      await idle()
    })

  verifies('model.steps', 'that calls tools for ever is asked as often as it may be', async () => {
    const { wire, upstream, idle } = await start('endless-tools', { maxSteps: 3 })
    const failed = (await say(wire, 'Hello')).at(-1)
    expect(failed).toMatchObject({ type: 'response.error', error: { code: 'tool_budget_exceeded', details: { steps: 3 } } })
    expect(upstream.requests).toHaveLength(3)
    await idle()
  })
})

verifies('model.tools-harmless', 'a tool that asks its own agent, for ever, is given up in its time, and holds nothing', async () => {
  let url = ''
  let asked = 0
  let asking = true
  const again: Tool = {
    name: 'again',
    timeoutMs: 1000,
    run: async (_, { signal }) => {
      if (!asking) return
      asked++
      const body = JSON.stringify({ messages: [user('go')] })
      await fetch(`${url}/v1/chat/completions`, { method: 'POST', headers: { 'content-type': 'application/json' }, body, signal })
    },
  }
  const model = answering(({ messages }) => (messages.at(-1)?.role === 'tool' ? [said('enough')] : [call('c', 'again', {})]))
  const server = await serve({ name: 'bot', model, tools: [again] })
  url = server.url
  const events = await say(server.wire, 'go')
  expect(textOf(events)).toBe('enough')
  const told = events.find((event) => event['delta']?.type === 'tool_result')
  expect(told?.['delta'].tool_result).toMatchObject({ is_error: true, result: expect.stringContaining('timeout') })
  expect(asked).toBeGreaterThan(1)
  asking = false
  await server.idle()
})
