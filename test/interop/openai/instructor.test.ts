import Instructor from '@instructor-ai/instructor'
import OpenAI from 'openai5'
import { expect, test } from 'vitest'
import * as z from 'zod/v3'
import { demo } from '../../../src/agents/demo/index.ts'
import { defineAgent } from '../../../src/core/agent-kit/define-agent.ts'
import { text } from '../../../src/core/agent-kit/drafts.ts'
import { endless } from '../../support/agents.ts'
import { startServer } from '../../support/server.ts'

const Weather = z.object({ city: z.string(), sky: z.enum(['clear', 'cloudy']) })

const MODES = ['TOOLS', 'JSON', 'JSON_SCHEMA'] as const

function clientAt(url: string, mode: (typeof MODES)[number]) {
  const oai = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'any', maxRetries: 0 })
  return { oai, client: Instructor({ client: oai as never, mode }) }
}

const response_model = { schema: Weather, name: 'Weather' }

/** In the modes without tools the schema is told to the model in words, which the demo does not read. */
const exact = defineAgent('exact', async function* () {
  yield text('{"city":"Oslo","sky":"clear"}')
})

test.each(MODES)('an answer in the form of a schema (%s)', async (mode) => {
  const { url } = await startServer([demo(), exact])
  const { client } = clientAt(url, mode)
  const messages = [{ role: 'user' as const, content: '/tool Weather {"city":"Oslo","sky":"clear"}' }]
  const answer = await client.chat.completions.create({ model: mode === 'TOOLS' ? 'demo' : 'exact', messages, response_model })
  expect(answer).toMatchObject({ city: 'Oslo', sky: 'clear' })
})

test('the same as a stream of partial objects', async () => {
  const { url } = await startServer(demo())
  const { client } = clientAt(url, 'TOOLS')
  const messages = [{ role: 'user' as const, content: '/tool Weather {"city":"Oslo","sky":"clear"}' }]
  const stream = await client.chat.completions.create({ model: 'demo', messages, response_model, stream: true })
  let last: unknown
  for await (const partial of stream as AsyncIterable<unknown>) last = partial
  expect(last).toMatchObject({ city: 'Oslo', sky: 'clear' })
})

test('text and a stream of text, without a schema', async () => {
  const { url } = await startServer(demo())
  const { client } = clientAt(url, 'TOOLS')
  const ask = (content: string) => ({ model: 'demo', messages: [{ role: 'user' as const, content }] })
  const answer = (await client.chat.completions.create(ask('Hello'))) as OpenAI.ChatCompletion
  expect(answer.choices[0]?.message.content).toBe('You said: Hello')
  const stream = await client.chat.completions.create({ ...ask('/count 3'), stream: true })
  let heard = ''
  for await (const chunk of stream as AsyncIterable<OpenAI.ChatCompletionChunk>) heard += chunk.choices[0]?.delta.content ?? ''
  expect(heard).toBe('1 2 3')
})

test('an abort stops the agent', async () => {
  const { agent, stopped } = endless()
  const { url } = await startServer(agent)
  const { client } = clientAt(url, 'TOOLS')
  const leaving = new AbortController()
  const request = { model: 'endless', messages: [{ role: 'user' as const, content: 'Go' }], stream: true as const }
  const stream = await client.chat.completions.create(request, { signal: leaving.signal })
  await expect(async () => {
    for await (const chunk of stream as AsyncIterable<unknown>) if (chunk) leaving.abort()
    throw new Error('it ended')
  }).rejects.toThrow()
  await stopped
})

test('an error keeps its status', async () => {
  const { url } = await startServer(demo())
  const { client } = clientAt(url, 'TOOLS')
  const messages = [{ role: 'user' as const, content: '/error forbidden' }]
  const refused = client.chat.completions.create({ model: 'demo', messages, response_model, max_retries: 0 })
  await expect(refused).rejects.toMatchObject({ status: 403, code: 'permission_denied' })
})
