import { Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, run, setTracingDisabled, tool } from '@openai/agents'
import { OpenAI } from 'openai'
import { describe, expect, test } from 'vitest'
import * as z from 'zod'
import { demo } from '../../../src/agents/demo/index.ts'
import { endless } from '../../support/agents.ts'
import { startServer } from '../../support/server.ts'

// It would send what it does to OpenAI.
setTracingDisabled(true)

const models = [
  { name: 'chat completions', modelOf: (client: OpenAI, name: string) => new OpenAIChatCompletionsModel(client, name) },
  { name: 'responses', modelOf: (client: OpenAI, name: string) => new OpenAIResponsesModel(client, name) },
]

describe.each(models)('@openai/agents over $name', ({ modelOf }) => {
  const modelAt = (url: string, name: string) => modelOf(new OpenAI({ baseURL: `${url}/v1`, apiKey: 'any' }), name)
  const connect = async () => modelAt((await startServer(demo())).url, 'demo')

  test('runs to the final output', async () => {
    const agent = new Agent({ name: 'Echo', instructions: 'Repeat', model: await connect() })
    const { finalOutput, state } = await run(agent, 'Hello')
    expect(finalOutput).toBe('You said: Hello')
    expect(state.usage.requests).toBe(1)
  })

  test('streams', async () => {
    const agent = new Agent({ name: 'Counter', model: await connect() })
    const result = await run(agent, '/count 5', { stream: true })
    let text = ''
    for await (const piece of result.toTextStream()) text += piece
    await result.completed
    expect([text, result.finalOutput]).toEqual(['1 2 3 4 5', '1 2 3 4 5'])
  })

  test.each([false, true])('calls tools (streamed: %s)', async (stream) => {
    const asked: string[] = []
    const weather = tool({
      name: 'weather',
      description: 'The weather in a city',
      parameters: z.object({ city: z.string() }),
      execute: ({ city }) => {
        asked.push(city)
        return `${city}: sun`
      },
    })
    const agent = new Agent({ name: 'Weather', model: await connect(), tools: [weather] })
    const question = '/tool weather {"city":"Oslo"}'
    const result = stream ? await run(agent, question, { stream: true }) : await run(agent, question)
    if ('completed' in result) await result.completed
    expect(result.finalOutput).toBe('weather answered: Oslo: sun')
    expect(asked).toEqual(['Oslo'])
  })

  test('gives the form that was asked for', async () => {
    const Answer = z.object({ city: z.string(), sky: z.enum(['clear', 'cloudy']) })
    const agent = new Agent({ name: 'Former', model: await connect(), outputType: Answer })
    expect((await run(agent, '/json')).finalOutput).toEqual({ city: 'text', sky: 'clear' })
  })

  test('goes on from the history of a run', async () => {
    const agent = new Agent({ name: 'Echo', model: await connect() })
    const first = await run(agent, 'One')
    const { finalOutput } = await run(agent, [...first.history, { role: 'user', content: '/history' }])
    expect(finalOutput).toMatch(/user: One\nassistant: You said: One\nuser: \/history$/)
  })

  test('stops the agent when it is aborted', async () => {
    const { agent: speaker, stopped } = endless()
    const { url } = await startServer(speaker)
    const agent = new Agent({ name: 'Endless', model: modelAt(url, 'endless') })
    const leaving = new AbortController()
    const result = await run(agent, 'Go', { stream: true, signal: leaving.signal })
    const reading = (async () => {
      for await (const _ of result.toTextStream()) leaving.abort()
    })()
    await reading.catch(() => undefined)
    await stopped
    expect(leaving.signal.aborted).toBe(true)
  })
})
