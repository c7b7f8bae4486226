import { describe, expect, test } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { llmAgent } from '../../src/agents/llm/index.ts'
import { modelOf } from '../../src/agents/llm/model.ts'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { text } from '../../src/core/agent-kit/drafts.ts'
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
  for (const path of ['/v1/nothing', '/v1/embeddings', '/agents/demo/v1/files/x', '/agents/nobody/v1/files']) {
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
