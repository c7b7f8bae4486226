import { HumanMessage, type BaseMessage, type ToolMessage } from '@langchain/core/messages'
import { tool } from '@langchain/core/tools'
import { ChatOpenAI } from '@langchain/openai'
import { expect, test } from 'vitest'
import * as z from 'zod'
import { demo } from '../../../src/agents/demo/index.ts'
import { endless } from '../../support/agents.ts'
import { startServer } from '../../support/server.ts'

interface Options {
  readonly model?: string
  readonly responses: boolean
}

const modelAt = (url: string, { model = 'demo', responses }: Options): ChatOpenAI =>
  new ChatOpenAI({ model, apiKey: 'any', useResponsesApi: responses, configuration: { baseURL: `${url}/v1` } })

const connect = async (options: Options): Promise<ChatOpenAI> => modelAt((await startServer(demo())).url, options)

const weather = tool(({ city }) => `${city}: sun`, {
  name: 'weather',
  description: 'The weather in a city',
  schema: z.object({ city: z.string() }),
})

const apis = [
  { api: 'chat completions', responses: false },
  { api: 'responses', responses: true },
]

test.each(apis)('invoke ($api)', async ({ responses }) => {
  const model = await connect({ responses })
  const answer = await model.invoke('Hello')
  expect(answer.text).toBe('You said: Hello')
  expect(answer).toMatchObject({ usage_metadata: { total_tokens: expect.any(Number) } })
})

test.each(apis)('stream ($api)', async ({ responses }) => {
  const model = await connect({ responses })
  let text = ''
  for await (const chunk of await model.stream('/count 5')) text += chunk.text
  expect(text).toBe('1 2 3 4 5')
})

test.each(apis)('bindTools: two requests, and the result in the history ($api)', async ({ responses }) => {
  const model = (await connect({ responses })).bindTools([weather])
  const messages: BaseMessage[] = [new HumanMessage('/tool weather {"city":"Oslo"}')]
  const call = await model.invoke(messages)
  expect(call.tool_calls).toMatchObject([{ name: 'weather', args: { city: 'Oslo' }, id: expect.any(String) }])
  const results = await Promise.all((call.tool_calls ?? []).map((asked) => weather.invoke(asked) as Promise<ToolMessage>))
  const answer = await model.invoke([...messages, call, ...results])
  expect(answer.text).toBe('weather answered: Oslo: sun')
  expect(answer.tool_calls).toEqual([])
})

test.each(apis)('bindTools, streamed ($api)', async ({ responses }) => {
  const model = (await connect({ responses })).bindTools([weather])
  const chunks = []
  for await (const chunk of await model.stream('/tool weather {"city":"Oslo"}')) chunks.push(chunk)
  const [first, ...rest] = chunks
  const whole = rest.reduce((sum, chunk) => sum?.concat(chunk), first)
  expect(whole?.tool_calls).toMatchObject([{ name: 'weather', args: { city: 'Oslo' } }])
})

test.each(apis)('withStructuredOutput ($api)', async ({ responses }) => {
  const model = await connect({ responses })
  const Weather = z.object({ city: z.string(), sky: z.enum(['clear', 'cloudy']) })
  expect(await model.withStructuredOutput(Weather, { method: 'jsonSchema' }).invoke('/json')).toEqual({ city: 'text', sky: 'clear' })
})

test.each(apis)('an abort stops the agent ($api)', async ({ responses }) => {
  const { agent, stopped } = endless()
  const { url } = await startServer(agent)
  const model = modelAt(url, { model: 'endless', responses })
  for await (const chunk of await model.stream('Go')) if (chunk.text !== '') break
  await stopped
})

test.each(apis)('a refusal is tried once, and says why ($api)', async ({ responses }) => {
  const model = await connect({ responses })
  await expect(model.invoke('/error conflict')).rejects.toMatchObject({ status: 409, code: 'conflict' })
})
