/** What the compliance suite of Open Responses asks for, as its public description has it, with an agent that can do all of it. */
import { describe, expect, test } from 'vitest'
import * as z from 'zod'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { text } from '../../src/core/agent-kit/drafts.ts'
import { startServer } from '../support/server.ts'
import { checkEvents, client, fn, textOf, typesOf, type Json } from './responses-wire.ts'

/** The response object, with what Open Responses demands of each field. */
const ResponseObject = z.object({
  id: z.string().min(1),
  object: z.literal('response'),
  created_at: z.int(),
  completed_at: z.nullable(z.int()),
  status: z.string(),
  incomplete_details: z.nullable(z.object({ reason: z.string() })),
  model: z.string(),
  previous_response_id: z.nullable(z.string()),
  instructions: z.nullable(z.string()),
  output: z.array(z.object({ type: z.string(), id: z.string(), status: z.optional(z.string()) })),
  error: z.nullable(z.object({ code: z.string(), message: z.string() })),
  tools: z.array(z.object({ type: z.string() })),
  tool_choice: z.union([z.string(), z.object({ type: z.string() })]),
  truncation: z.enum(['auto', 'disabled']),
  parallel_tool_calls: z.boolean(),
  text: z.object({ format: z.object({ type: z.string() }) }),
  top_p: z.number(),
  presence_penalty: z.number(),
  frequency_penalty: z.number(),
  top_logprobs: z.int(),
  temperature: z.number(),
  reasoning: z.nullable(z.object({})),
  usage: z.nullable(z.object({ input_tokens: z.int(), output_tokens: z.int(), total_tokens: z.int() })),
  max_output_tokens: z.nullable(z.int()),
  max_tool_calls: z.nullable(z.int()),
  store: z.boolean(),
  background: z.boolean(),
  service_tier: z.string(),
  metadata: z.record(z.string(), z.string()),
  safety_identifier: z.nullable(z.string()),
  prompt_cache_key: z.nullable(z.string()),
})

/** Calls the client's function, if there is one; else says what it was given. */
const able = defineAgent('able', async function* (turn) {
  const { messages, config } = turn
  const [tool] = config.tools ?? []
  if (tool && messages.at(-1)?.role === 'user') {
    const call = { id: 'c1', name: tool.function.name, arguments: '{"place":"Oslo"}' }
    yield { type: 'response.delta', delta: { type: 'tool_call', tool_call: call } }
    await turn.ask('tool.call', { call_id: call.id, name: call.name, arguments: call.arguments })
  }
  yield text(messages.map(({ role, content_items = [] }) => [role, ...content_items.map(({ type }) => type)].join('+')).join(' '))
})

const said = (role: string, content: unknown) => ({ type: 'message', role, content })
const IMAGE = 'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

const CASES: [name: string, body: object, output: string, words?: string][] = [
  ['a message', { input: [said('user', 'Hello')] }, 'message', 'user'],
  ['a plain text', { input: 'Hello' }, 'message', 'user'],
  ['a system prompt', { input: [said('system', 'Be brief'), said('user', 'Hello')] }, 'message', 'system user'],
  ['a function', { input: [said('user', 'The weather?')], tools: [fn('weather')] }, 'function_call'],
  [
    'an image',
    {
      input: [
        said('user', [
          { type: 'input_text', text: 'What is it?' },
          { type: 'input_image', image_url: IMAGE },
        ]),
      ],
    },
    'message',
    'user+text+image',
  ],
  [
    'several turns',
    { input: [said('user', 'I am Ada'), said('assistant', 'Hello Ada'), said('user', 'Who am I?')] },
    'message',
    'user assistant+text user',
  ],
]

describe.each(CASES)('Open Responses: %s', (_, body, type, words) => {
  test('in one piece and as a stream', async () => {
    const { url } = await startServer(able)
    const api = client(url)
    const { status, body: whole } = await api.ask({ model: 'able', ...body })
    const events = await api.stream({ model: 'able', ...body })
    const streamed = events.at(-1)?.['response'] as Json
    checkEvents(events)
    expect(status).toBe(200)
    for (const response of [whole, streamed]) {
      expect(ResponseObject.safeParse(response).error?.issues ?? []).toEqual([])
      expect(response['status']).toBe('completed')
      expect((response['output'] as Json[]).map((item) => item['type'])).toEqual([type])
      if (words !== undefined) expect(textOf(response)).toBe(words)
    }
    if (type !== 'function_call') return
    expect(typesOf(events)).toEqual(
      expect.arrayContaining(['output_item.added', 'function_call_arguments.delta', 'function_call_arguments.done', 'output_item.done']),
    )
  })
})
