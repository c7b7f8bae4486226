import { describe, expect, test } from 'vitest'
import { llmAgent, modelOf } from '../../src/agents/llm/index.ts'
import type { Provider } from '../../src/core/ports/provider.ts'
import type { Tool } from '../../src/core/ports/skill.ts'
import { anthropic } from '../../src/providers/anthropic/index.ts'
import { google } from '../../src/providers/google/index.ts'
import { deepseek, fireworks, ollama } from '../../src/providers/openai-compatible/index.ts'
import { openai } from '../../src/providers/openai/index.ts'
import { startServer } from '../support/server.ts'
import { say, textOf } from '../support/talk.ts'
import { overWebSocket } from '../support/wire.ts'
import { ask, user } from '../openai/support.ts'
import { strict } from './chat.ts'
import { startUpstream, type Upstream } from './upstream/index.ts'

const weather: Tool = {
  name: 'weather',
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  run: ({ city }) => `sunny in ${String(city)}`,
}

interface Row {
  readonly name: string
  readonly make: (upstream: Upstream) => Provider
  readonly model?: (scenario: string) => string
  /** What the next request must hold of a thought. */
  readonly kept: RegExp
}

const THOUGHT = 'I should ask the tool'

const providers: readonly Row[] = [
  {
    name: 'openai',
    make: ({ url }) => openai({ apiKey: 'key', baseUrl: `${url}/openai/v1`, retries: 0 }),
    model: (scenario) => `gpt-5.1@${scenario}`,
    kept: /"type":"reasoning","id":"rs_\w+","summary":\[{[^\]]*}\],"encrypted_content":"gAAAA/,
  },
  { name: 'openai, by Chat Completions', make: (upstream) => strict(upstream), kept: /"tool_calls":/ },
  {
    name: 'fireworks',
    make: ({ url }) => fireworks({ apiKey: 'key', baseUrl: `${url}/fireworks/v1`, retries: 0 }),
    kept: new RegExp(`"reasoning_content":"${THOUGHT}`),
  },
  {
    name: 'deepseek',
    make: ({ url }) => deepseek({ apiKey: 'key', baseUrl: `${url}/deepseek/v1`, retries: 0 }),
    kept: new RegExp(`"reasoning_content":"${THOUGHT}`),
  },
  {
    name: 'anthropic',
    make: ({ url }) => anthropic({ apiKey: 'key', baseUrl: `${url}/anthropic`, retries: 0 }),
    model: (scenario) => `claude-sonnet-4-5@${scenario}`,
    kept: /"type":"thinking","thinking":"[^"]+","signature":"[^"]+"/,
  },
  {
    name: 'google',
    make: ({ url }) => google({ apiKey: 'key', baseUrl: `${url}/google`, retries: 0 }),
    model: (scenario) => `gemini-3-pro@${scenario}`,
    kept: /"thoughtSignature":"[^"]+"/,
  },
  {
    name: 'ollama',
    make: ({ url }) => ollama({ baseUrl: `${url}/ollama/v1`, retries: 0 }),
    kept: new RegExp(`"reasoning":"${THOUGHT}`),
  },
]

describe.each(providers)('an agent with a model of $name', ({ make, model = (scenario) => scenario, kept }) => {
  async function start(scenario: string, fallback?: string) {
    const upstream = await startUpstream()
    const provider = make(upstream)
    const agent = llmAgent({
      name: 'bot',
      model: modelOf(provider, model(scenario)),
      ...(fallback !== undefined && { fallbacks: [modelOf(provider, model(fallback))] }),
      tools: [weather],
    })
    const server = await startServer(agent)
    const connect = async () => {
      const wire = await overWebSocket(server.url)
      await wire.open({ session: { modalities: ['text'] } })
      return wire
    }
    const complete = (content: string) => ask(`${server.url}/v1/chat/completions`, { messages: [user(content)] })
    return { upstream, connect, complete }
  }

  test('runs parallel tools, over events and over completions', async () => {
    const { upstream, connect, complete } = await start('tools')
    const heard = await say(await connect(), 'The weather in Paris and Rome?')
    expect(heard.at(-1)).toMatchObject({ type: 'response.done' })
    expect(textOf(heard)).toMatch(/sunny in Paris.* \| .*sunny in Rome/)
    expect(upstream.requests).toHaveLength(2)
    const { body } = await complete('The weather in Paris and Rome?')
    expect(body.choices[0].message.content).toMatch(/sunny in Paris.* \| .*sunny in Rome/)
  })

  test('keeps its thoughts over a tool round, and over the next turn', async () => {
    const { upstream, connect } = await start('thinking')
    const wire = await connect()
    const heard = await say(wire, 'The weather in Paris?')
    expect(heard.at(-1)).toMatchObject({ type: 'response.done' })
    expect(textOf(heard)).toContain('sunny in Paris')
    expect((await say(wire, 'And now?')).at(-1)).toMatchObject({ type: 'response.done' })
    expect(upstream.requests).toHaveLength(4)
    for (const at of [1, 3]) expect(JSON.stringify(upstream.requests[at]?.body)).toMatch(kept)
  })

  test('goes on with the next model where one fails before it speaks, and fails where one fails after', async () => {
    const { connect } = await start('error-500', 'text')
    expect((await say(await connect(), 'Hello')).at(-1)).toMatchObject({ type: 'response.done' })
    const cut = await start('text+cut', 'text')
    const heard = await say(await cut.connect(), 'Hello')
    expect(textOf(heard)).not.toBe('')
    expect(heard.at(-1)).toMatchObject({ type: 'response.error', error: { code: 'provider_error' } })
    expect(cut.upstream.requests).toHaveLength(1)
    const completed = await cut.complete('Hello')
    expect(completed).toMatchObject({ status: 502, body: { error: { code: 'provider_error' } } })
  })

  test('lets go of the connection on a cancel', async () => {
    const { upstream, connect } = await start('text+stall')
    const wire = await connect()
    await wire.send({ type: 'input.text', text: 'Hello' })
    await wire.send({ type: 'response.create' })
    await wire.next('response.delta')
    await wire.send({ type: 'response.cancel' })
    await wire.next('response.cancelled')
    await upstream.until(() => upstream.aborts === 1)
    expect(upstream.aborts).toBe(1)
  })
})
