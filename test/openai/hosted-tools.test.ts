import { describe, expect, test } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { llmAgent } from '../../src/agents/llm/index.ts'
import { modelOf, type Model } from '../../src/agents/llm/model.ts'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { text } from '../../src/core/agent-kit/drafts.ts'
import { anthropic } from '../../src/providers/anthropic/index.ts'
import { google } from '../../src/providers/google/index.ts'
import { openaiCompatible } from '../../src/providers/openai-compatible/index.ts'
import { openai } from '../../src/providers/openai/index.ts'
import { startUpstream } from '../providers/upstream/index.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'
import { ask, user } from './support.ts'

const COMPLETIONS = '/v1/chat/completions'
const RESPONSES = '/v1/responses'
const SEARCH = { type: 'web_search', search_context_size: 'low' }
const fn = { type: 'function', name: 'f', parameters: { type: 'object', properties: {} } }

/** An agent with this model, and what the vendor is asked for its tools. */
async function served(modelAt: (upstream: string) => Model) {
  const upstream = await startUpstream()
  const { url } = await startServer(llmAgent({ name: 'm', model: modelAt(upstream.url) }))
  const post = (tools: readonly object[], more: object) => ask(url + RESPONSES, { model: 'm', input: 'Hi', tools, ...more })
  return {
    url,
    asked: async (tools: readonly object[], more: object = {}) => {
      expect((await post(tools, more)).status).toBe(200)
      return upstream.requests.at(-1)?.body ?? {}
    },
    refused: async (tools: readonly object[], why: string, more: object = {}) => {
      const before = upstream.requests.length
      const { status, body } = await post(tools, more)
      expect([status, body.error.code]).toEqual([400, 'unsupported_value'])
      expect(body.error.message).toContain(why)
      expect(upstream.requests.length).toBe(before)
    },
  }
}

describe('tools that a provider runs', () => {
  verifies('openai-responses.hosted-tools', 'go to a provider that has them, as they came, beside functions', async () => {
    const upstream = await startUpstream()
    const model = modelOf(openai({ name: 'mine', apiKey: 'k', baseUrl: `${upstream.url}/openai/v1` }), 'text')
    const { url } = await startServer(llmAgent({ name: 'm', model }))
    const interpreter = { type: 'code_interpreter', container: { type: 'auto' } }
    const tool_choice = { type: 'web_search' }
    const first = await ask(url + RESPONSES, { model: 'm', input: 'Hi', tools: [fn, SEARCH, interpreter], tool_choice })
    expect(first.status).toBe(200)
    const sent = upstream.requests.at(-1)?.body
    expect(sent?.['tools']).toEqual([expect.objectContaining({ type: 'function', name: 'f' }), SEARCH, interpreter])
    expect(sent?.['tool_choice']).toEqual(tool_choice)
    const second = await ask(url + COMPLETIONS, { model: 'm', messages: [user('Hi')], tools: [{ type: 'web_search_2025_08_26' }] })
    expect(second.status).toBe(200)
    expect(upstream.requests.at(-1)?.body['tools']).toEqual([{ type: 'web_search_2025_08_26' }])
    const none = await ask(url + RESPONSES, { model: 'm', input: 'Hi', tools: [SEARCH], tool_choice: 'none' })
    expect(none.status).toBe(200)
    expect(upstream.requests.at(-1)?.body['tools']).toBe(undefined)
  })

  verifies('openai-responses.hosted-tools', 'go to Anthropic in its own words', async () => {
    const { url, asked, refused } = await served((upstream) =>
      modelOf(anthropic({ apiKey: 'k', baseUrl: `${upstream}/anthropic` }), 'claude-sonnet-4-5'),
    )
    const place = { type: 'approximate', city: 'Paris', country: 'FR' }
    const search = { ...SEARCH, filters: { allowed_domains: ['example.com'] }, user_location: place }
    const interpreter = { type: 'code_interpreter', container: { type: 'auto' } }
    const first = await asked([fn, search, interpreter, { type: 'web_fetch' }], { tool_choice: { type: 'web_search' } })
    expect(first['tools']).toEqual([
      expect.objectContaining({ name: 'f' }),
      { type: 'web_search_20250305', name: 'web_search', allowed_domains: ['example.com'], user_location: place },
      { type: 'code_execution_20250825', name: 'code_execution' },
      { type: 'web_fetch_20250910', name: 'web_fetch' },
    ])
    expect(first['tool_choice']).toEqual({ type: 'tool', name: 'web_search' })
    const own = { type: 'web_search_20260209', max_uses: 3 }
    expect(await asked([own], { tool_choice: 'required' })).toMatchObject({
      tools: [{ ...own, name: 'web_search' }],
      tool_choice: { type: 'any' },
    })
    expect(await asked([SEARCH], { tool_choice: 'none' })).not.toHaveProperty('tools')
    const second = await ask(url + COMPLETIONS, { model: 'm', messages: [user('Hi')], tools: [{ type: 'web_search_preview' }] })
    expect(second.status).toBe(200)
    await refused([{ type: 'file_search' }], 'The agent "m" has no tool of the type "file_search"')
    await refused([{ type: 'image_generation' }], 'The agent "m" has no tool of the type "image_generation"')
    await refused([{ type: 'code_interpreter', container: { type: 'auto', file_ids: ['file_1'] } }], 'files and containers of OpenAI')
    await refused([SEARCH, { ...fn, name: 'web_search' }], 'rename the function')
  })

  verifies('openai-responses.hosted-tools', 'go to Google in its own words', async () => {
    const { asked, refused } = await served((upstream) => modelOf(google({ apiKey: 'k', baseUrl: `${upstream}/google` }), 'gemini-3-pro'))
    expect((await asked([SEARCH, { type: 'code_interpreter', container: { type: 'auto' } }, { type: 'google_search' }]))['tools']).toEqual([
      { googleSearch: {} },
      { codeExecution: {} },
    ])
    expect((await asked([{ type: 'url_context' }, { type: 'code_execution' }]))['tools']).toEqual([
      { urlContext: {} },
      { codeExecution: {} },
    ])
    expect(await asked([SEARCH], { tool_choice: 'none' })).not.toHaveProperty('tools')
    await refused([{ type: 'file_search' }], 'The agent "m" has no tool of the type "file_search"')
    await refused([{ ...SEARCH, filters: { allowed_domains: ['example.com'] } }], 'takes no filters')
    await refused([{ type: 'code_interpreter', container: 'cntr_1' }], 'files and containers of OpenAI')
    await refused([SEARCH, fn], 'functions and tools of its own')
    await refused([SEARCH], '"tool_choice" must be "auto"', { tool_choice: 'required' })
  })

  test('what Anthropic runs on the way does not disturb its answer', async () => {
    const blocks = [
      { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: {} },
      {
        type: 'web_search_tool_result',
        tool_use_id: 'srvtoolu_1',
        content: [{ type: 'web_search_result', url: 'https://example.com', title: 'T' }],
      },
      { type: 'text', text: '' },
    ]
    const deltas = [{ type: 'input_json_delta', partial_json: '{"query":"x"}' }, undefined, { type: 'text_delta', text: 'Found.' }]
    const events = [
      { type: 'message_start', message: { usage: { input_tokens: 1 } } },
      ...blocks.flatMap((content_block, index) => [
        { type: 'content_block_start', index, content_block },
        ...(deltas[index] ? [{ type: 'content_block_delta', index, delta: deltas[index] }] : []),
        { type: 'content_block_stop', index },
      ]),
      { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 2 } },
      { type: 'message_stop' },
    ]
    const upstream = await startUpstream()
    const body = events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join('')
    upstream.script('anthropic', { status: 200, headers: { 'content-type': 'text/event-stream' }, body })
    const model = modelOf(anthropic({ apiKey: 'k', baseUrl: `${upstream.url}/anthropic` }), 'claude-sonnet-4-5')
    const { url } = await startServer(llmAgent({ name: 'm', model }))
    const answer = await ask(url + RESPONSES, { model: 'm', input: 'Hi', tools: [SEARCH] })
    expect(answer.body.output).toMatchObject([{ type: 'message', content: [{ type: 'output_text', text: 'Found.' }] }])
    expect(answer.body.output).toHaveLength(1)
  })

  verifies('openai-responses.hosted-tools', 'are refused for an agent without them, by its name', async () => {
    const compatible = openaiCompatible({ name: 'c', baseUrl: 'http://127.0.0.1:9/v1' })
    const { url } = await startServer([demo(), llmAgent({ name: 'm', model: modelOf(compatible, 'x') })])
    for (const agent of ['demo', 'm']) {
      for (const type of ['web_search', 'code_interpreter', 'computer_use_preview', 'mcp', 'custom']) {
        const input = { input: 'Hi', tools: [fn, { type }] }
        const messages = { messages: [user('Hi')], tools: [{ type: 'function', function: { name: 'f' } }, { type }] }
        for (const [path, body] of [
          [RESPONSES, input],
          [COMPLETIONS, messages],
        ] as const) {
          const answer = await ask(url + path, { model: agent, ...body })
          expect(answer.status).toBe(400)
          expect(answer.body.error).toMatchObject({ type: 'invalid_request_error', code: 'unsupported_value', param: 'tools[1].type' })
          expect(answer.body.error.message).toContain(`The agent "${agent}" has no tool of the type "${type}"`)
        }
      }
    }
  })

  test('are not forgotten by a fallback that lacks them', async () => {
    const upstream = await startUpstream()
    const model = modelOf(openai({ apiKey: 'k', baseUrl: `${upstream.url}/openai/v1`, retries: 0 }), 'error-500')
    const fallbacks = [modelOf(openaiCompatible({ name: 'c', baseUrl: `${upstream.url}/compatible/v1` }), 'text')]
    const { url } = await startServer(llmAgent({ name: 'm', model, fallbacks }))
    const answer = await ask(url + RESPONSES, { model: 'm', input: 'Hi', tools: [SEARCH] })
    expect([answer.status, answer.body.error.message]).toEqual([400, 'The model "text" has no tool of the type "web_search"'])
    expect(upstream.requests).toHaveLength(1)
  })

  test('reach an agent in code that says it has them', async () => {
    const agent = defineAgent(
      'm',
      async function* ({ config }) {
        yield text(JSON.stringify((config.extensions?.['openai'] as { tools: unknown }).tools))
      },
      { capabilities: { extensions: { openai: { hosted_tools: ['web_search'] } } } },
    )
    const { url } = await startServer(agent)
    const { body } = await ask(url + COMPLETIONS, { model: 'm', messages: [user('Hi')], tools: [SEARCH] })
    expect(JSON.parse(body.choices[0].message.content as string)).toEqual([SEARCH])
  })
})

test('a picture that the provider drew is one of the answer', async () => {
  const upstream = await startUpstream()
  const item = { type: 'image_generation_call', id: 'ig_1', status: 'completed', result: 'aGk=', output_format: 'webp' }
  const response = { id: 'resp_1', object: 'response', status: 'completed', output: [item] }
  upstream.script('responses', { status: 200, headers: { 'content-type': 'application/json' }, body: JSON.stringify(response) })
  const model = modelOf(openai({ apiKey: 'k', baseUrl: `${upstream.url}/openai/v1` }), 'text')
  const { url } = await startServer(llmAgent({ name: 'm', model }))
  const { body } = await ask(url + RESPONSES, { model: 'm', input: 'A cat', tools: [{ type: 'image_generation' }] })
  expect(body.output).toMatchObject([{ type: 'image_generation_call', result: 'aGk=', output_format: 'webp' }])
})

verifies('openai-completions.unknown-path', 'nothing under /v1 is refused in another form than that of OpenAI', async () => {
  const { url } = await startServer(demo())
  for (const path of ['/v1', '/v1/nothing', '/v1/embeddings', '/agents/demo/v1/files/x', '/agents/nobody/v1/files']) {
    for (const method of ['GET', 'POST', 'DELETE']) {
      const response = await fetch(url + path, { method })
      expect(response.status).toBe(404)
      expect(response.headers.get('x-request-id')).toMatch(/^req_/)
      expect(await response.json()).toEqual({
        error: { message: expect.any(String), type: 'invalid_request_error', code: expect.any(String), param: null },
      })
    }
  }
  // Others keep their own form.
  expect(await (await fetch(`${url}/nothing`)).json()).toEqual({ error: { code: 'not_found', message: expect.any(String) } })
})
