import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import * as ai6 from 'ai'
import * as ai5 from 'ai5'
import { createOpenAI as createOpenAI2 } from 'ai-sdk-openai2'
import { createOpenAICompatible as createOpenAICompatible1 } from 'ai-sdk-openai-compatible1'
import { describe, expect, test } from 'vitest'
import * as z from 'zod'
import { demo } from '../../../src/agents/demo/index.ts'
import { PNG } from '../../../src/agents/demo/media.ts'
import { endless, mirror, type Mirrored } from '../../support/agents.ts'
import { startServer } from '../../support/server.ts'

type Sdk = typeof ai6
type ModelOf = (baseURL: string) => (model: string) => ai6.LanguageModel

/** Both majors have what is used here. Their types differ in what is not. */
const older = { sdk: ai5 as unknown as Sdk, major: 5 }
const newer = { sdk: ai6, major: 6 }
const COMPATIBLE = { name: 'uamp', apiKey: 'any', supportsStructuredOutputs: true, includeUsage: true }

const providers: { name: string; sdk: Sdk; major: number; modelOf: ModelOf }[] = [
  {
    ...newer,
    name: '@ai-sdk/openai-compatible',
    modelOf: (baseURL) => createOpenAICompatible({ ...COMPATIBLE, baseURL }),
  },
  { ...newer, name: '@ai-sdk/openai, chat', modelOf: (baseURL) => createOpenAI({ baseURL, apiKey: 'any' }).chat },
  { ...newer, name: '@ai-sdk/openai, responses', modelOf: (baseURL) => createOpenAI({ baseURL, apiKey: 'any' }) },
  {
    ...older,
    name: '@ai-sdk/openai-compatible',
    modelOf: (baseURL) => createOpenAICompatible1({ ...COMPATIBLE, baseURL }) as unknown as ReturnType<ModelOf>,
  },
  {
    ...older,
    name: '@ai-sdk/openai, chat',
    modelOf: (baseURL) => createOpenAI2({ baseURL, apiKey: 'any' }).chat as unknown as ReturnType<ModelOf>,
  },
  {
    ...older,
    name: '@ai-sdk/openai, responses',
    modelOf: (baseURL) => createOpenAI2({ baseURL, apiKey: 'any' }) as unknown as ReturnType<ModelOf>,
  },
]

const Weather = z.object({ city: z.string(), sky: z.enum(['clear', 'cloudy']) })

describe.each(providers)('ai $major, $name', ({ modelOf, sdk, major }) => {
  const { APICallError, generateObject, generateText, Output, stepCountIs, streamObject, streamText, tool } = sdk
  const connect = async (agents = [demo()]) => {
    const { url } = await startServer(agents)
    return modelOf(`${url}/v1`)
  }
  const weather = (asked: string[]) =>
    tool({
      description: 'The weather in a city',
      inputSchema: z.object({ city: z.string() }),
      execute: ({ city }) => {
        asked.push(city)
        return `${city}: sun`
      },
    })

  test('generateText', async () => {
    const model = await connect()
    const { text, finishReason, usage } = await generateText({ model: model('demo'), prompt: 'Hello' })
    expect([text, finishReason]).toEqual(['You said: Hello', 'stop'])
    expect(usage.totalTokens).toBeGreaterThan(0)
  })

  test('streamText', async () => {
    const model = await connect()
    const { textStream, finishReason, usage, text } = streamText({ model: model('demo'), prompt: '/count 5' })
    const pieces: string[] = []
    for await (const piece of textStream) pieces.push(piece)
    expect([pieces.join(''), await text, await finishReason]).toEqual(['1 2 3 4 5', '1 2 3 4 5', 'stop'])
    expect((await usage).totalTokens).toBeGreaterThan(0)
  })

  test('a loop of tools', async () => {
    const model = await connect()
    const asked: string[] = []
    const request = {
      model: model('demo'),
      prompt: '/tool weather {"city":"Oslo"}',
      tools: { weather: weather(asked) },
      stopWhen: stepCountIs(3),
    }
    const { text, steps } = await generateText(request)
    expect(text).toMatch(/^weather answered: .*Oslo: sun/)
    expect(steps.map(({ finishReason }) => finishReason)).toEqual(['tool-calls', 'stop'])
    const streamed = streamText(request)
    expect(await streamed.text).toMatch(/^weather answered: .*Oslo: sun/)
    expect((await streamed.steps).flatMap(({ toolCalls }) => toolCalls)).toMatchObject([{ toolName: 'weather', input: { city: 'Oslo' } }])
    expect(asked).toEqual(['Oslo', 'Oslo'])
  })

  test('objects', async () => {
    const model = await connect()
    const expected = { city: 'text', sky: 'clear' }
    expect((await generateObject({ model: model('demo'), schema: Weather, prompt: '/json' })).object).toEqual(expected)
    const output = Output.object({ schema: Weather })
    const formed = await generateText({
      model: model('demo'),
      ...(major === 6 ? { output } : { experimental_output: output }),
      prompt: '/json',
    })
    expect(major === 6 ? formed.output : (formed as { experimental_output?: unknown }).experimental_output).toEqual(expected)
    const { partialObjectStream, object } = streamObject({ model: model('demo'), schema: Weather, prompt: '/json' })
    const partial: unknown[] = []
    for await (const piece of partialObjectStream) partial.push(piece)
    expect([partial.at(-1), await object]).toEqual([expected, expected])
  })

  test('the agent gets the history and the image', async () => {
    const model = await connect([demo(), mirror])
    const { text } = await generateText({
      model: model('mirror'),
      system: 'Be brief',
      messages: [
        { role: 'user', content: 'One' },
        { role: 'assistant', content: 'Uno' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'What is it?' },
            { type: 'image', image: Buffer.from(PNG, 'base64'), mediaType: 'image/png' },
          ],
        },
      ],
    })
    const { messages } = JSON.parse(text) as Mirrored
    expect(messages.slice(-3)).toMatchObject([
      { role: 'user', content: 'One' },
      { role: 'assistant', content: 'Uno' },
      {
        role: 'user',
        content_items: [
          { type: 'text', text: 'What is it?' },
          { type: 'image', image: PNG },
        ],
      },
    ])
  })

  test('an abort stops the agent', async () => {
    const { agent, stopped } = endless()
    const { url } = await startServer(agent)
    const model = modelOf(`${url}/v1`)
    const leaving = new AbortController()
    const { textStream } = streamText({ model: model('endless'), prompt: 'Go', abortSignal: leaving.signal })
    let heard = ''
    for await (const piece of textStream) {
      heard += piece
      leaving.abort()
    }
    await stopped
    expect(heard).toMatch(/^1 /)
  })

  test('an error keeps its status and what the server said', async () => {
    const model = await connect()
    const refused = await generateText({ model: model('demo'), prompt: '/error forbidden' }).catch((error: unknown) => error)
    expect(APICallError.isInstance(refused)).toBe(true)
    expect(refused).toMatchObject({ statusCode: 403, message: 'You asked me to fail with "forbidden"' })
  })
})

// The chat model of @ai-sdk/openai has no place for it: OpenAI's own chat API hides what its models think.
test.each(providers.filter(({ name }) => name !== '@ai-sdk/openai, chat'))(
  'reasoning (ai $major, $name)',
  async ({ modelOf, sdk: { generateText, streamText } }) => {
    const { url } = await startServer(demo())
    const request = { model: modelOf(`${url}/v1`)('demo'), prompt: '/think life' }
    const expected = ['Someone wants me to think about "life". I have thought about it.', 'I thought about: life']
    const whole = await generateText(request)
    expect([whole.reasoningText, whole.text]).toEqual(expected)
    const streamed = streamText(request)
    expect([await streamed.reasoningText, await streamed.text]).toEqual(expected)
  },
)
