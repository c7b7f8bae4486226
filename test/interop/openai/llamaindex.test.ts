import { openai, openaiResponses, type OpenAI } from '@llamaindex/openai'
import { FunctionTool, Settings } from 'llamaindex'
import { expect, test } from 'vitest'
import * as z from 'zod'
import { demo } from '../../../src/agents/demo/index.ts'
import { endless } from '../../support/agents.ts'
import { startServer } from '../../support/server.ts'

const apis = [
  { api: 'chat completions', make: openai as unknown as (init: object) => OpenAI },
  { api: 'responses', make: openaiResponses as unknown as (init: object) => OpenAI },
]

const at = (url: string, model = 'demo') => ({
  model,
  apiKey: 'any',
  baseURL: `${url}/v1`,
  maxRetries: 0,
  additionalSessionOptions: { maxRetries: 0 },
})
const user = (content: string) => ({ role: 'user' as const, content })

test.each(apis)('chat, and as the model of its settings ($api)', async ({ make }) => {
  const { url } = await startServer(demo())
  const llm = make(at(url))
  const { message } = await llm.chat({ messages: [user('Hello')] })
  expect(message.content).toBe('You said: Hello')
  Settings.llm = llm
  expect((await Settings.llm.complete({ prompt: 'Hello' })).text).toBe('You said: Hello')
})

test.each(apis)('a stream ($api)', async ({ make }) => {
  const { url } = await startServer(demo())
  let text = ''
  for await (const { delta, raw } of await make(at(url)).chat({ messages: [user('/count 5')], stream: true })) {
    // Over Responses this client repeats its last delta with every event that is none.
    const { type = 'response.output_text.delta' } = raw as { type?: string }
    if (type === 'response.output_text.delta') text += delta
  }
  expect(text).toBe('1 2 3 4 5')
})

test.each(apis)('a tool, called and answered ($api)', async ({ make }) => {
  const { url } = await startServer(demo())
  const llm = make(at(url))
  const weather = FunctionTool.from(({ city }: { city: string }) => `${city}: sun`, {
    name: 'weather',
    description: 'The weather in a city',
    parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  } as never)
  const messages = [user('/tool weather {"city":"Oslo"}')]
  const asked = await llm.chat({ messages, tools: [weather as never] })
  const { toolCall = [] } = asked.message.options as { toolCall?: { id: string; name: string; input: unknown }[] }
  expect(toolCall).toMatchObject([{ name: 'weather' }])
  const result = { id: toolCall[0]?.id ?? '', result: 'Oslo: sun', isError: false }
  const answer = await llm.chat({
    messages: [...messages, asked.message, { role: 'user', content: 'Oslo: sun', options: { toolResult: result } }] as never,
    tools: [weather as never],
  })
  expect(String(answer.message.content)).toContain('Oslo: sun')
})

test('an answer in the form of a schema', async () => {
  const { url } = await startServer(demo())
  const responseFormat = z.object({ city: z.string(), sky: z.enum(['clear', 'cloudy']) })
  const { message } = await apis[0]!.make(at(url)).chat({ messages: [user('/json')], responseFormat: responseFormat as never })
  expect(JSON.parse(String(message.content))).toEqual({ city: 'text', sky: 'clear' })
})

test.each(apis)('an abort stops the agent ($api)', async ({ make }) => {
  const { agent, stopped } = endless()
  const { url } = await startServer(agent)
  const leaving = new AbortController()
  // The client has no signal of its own, but takes a `fetch`.
  const aborting = (to: string | URL | Request, init?: RequestInit) => fetch(to, { ...init, signal: leaving.signal })
  const llm = make({ ...at(url, 'endless'), additionalSessionOptions: { fetch: aborting, maxRetries: 0 } })
  const read = async () => {
    for await (const { delta } of await llm.chat({ messages: [user('Go')], stream: true })) if (delta) leaving.abort()
  }
  await read().catch(() => undefined)
  await stopped
  expect(leaving.signal.aborted).toBe(true)
})

test.each(apis)('an error keeps its status ($api)', async ({ make }) => {
  const { url } = await startServer(demo())
  await expect(make(at(url)).chat({ messages: [user('/error forbidden')] })).rejects.toMatchObject({
    status: 403,
    code: 'permission_denied',
  })
})
