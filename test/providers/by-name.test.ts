import { afterEach, expect, test, vi } from 'vitest'
import { llmAgent, modelOf } from '../../src/agents/llm/index.ts'
import { text } from '../../src/core/agent-kit/drafts.ts'
import type { HttpClient } from '../../src/core/ports/http.ts'
import type { Provider } from '../../src/core/ports/provider.ts'
import { PROVIDER_NAMES } from '../../src/providers/by-name.ts'
import { namedModel } from '../../src/providers/named.ts'
import { nodeHttp } from '../../src/server/node/http-client.ts'
import { startServer } from '../support/server.ts'
import { say, textOf } from '../support/talk.ts'
import { overWebSocket } from '../support/wire.ts'
import { ask, toRequest } from './ask.ts'
import { startUpstream } from './upstream/index.ts'

const KEYS = ['OPENAI', 'ANTHROPIC', 'GEMINI', 'GOOGLE', 'FIREWORKS', 'DEEPSEEK'].map((vendor) => `${vendor}_API_KEY`)
const ADDRESSES = ['OPENAI_BASE_URL', 'ANTHROPIC_BASE_URL', 'GOOGLE_GEMINI_BASE_URL']

/** The environment has these variables, and no other keys and addresses. */
function environment(variables: Readonly<Record<string, string>> = {}): void {
  for (const name of [...KEYS, ...ADDRESSES]) vi.stubEnv(name, variables[name])
}

afterEach(() => void vi.unstubAllEnvs())

/** Each vendor's address, and where the upstream stands in for it. */
const PLACES: readonly (readonly [string, string])[] = [
  ['https://api.openai.com/v1', '/openai/v1'],
  ['https://api.anthropic.com', '/anthropic'],
  ['https://generativelanguage.googleapis.com', '/google'],
  ['https://api.fireworks.ai/inference/v1', '/fireworks/v1'],
  ['https://api.deepseek.com', '/deepseek/v1'],
  ['http://127.0.0.1:11434/v1', '/ollama/v1'],
]

/** Reaches the upstream in place of each vendor. */
function rerouted(upstream: string): HttpClient & { close(): void } {
  const own = nodeHttp()
  const toUpstream = (url: string): string => {
    const [from, to] = PLACES.find(([address]) => url.startsWith(address)) ?? [url, '/nowhere']
    return url.replace(from, upstream + to)
  }
  return { request: (request) => own.request({ ...request, url: toUpstream(request.url) }), close: () => own.close() }
}

test.each([
  { name: 'openai/gpt-5.1@text', variable: 'OPENAI_API_KEY', header: 'authorization', shown: 'Bearer key-of-mine' },
  { name: 'anthropic/claude-sonnet-4-5@text', variable: 'ANTHROPIC_API_KEY', header: 'x-api-key', shown: 'key-of-mine' },
  { name: 'claude/claude-sonnet-4-5@text', variable: 'ANTHROPIC_API_KEY', header: 'x-api-key', shown: 'key-of-mine' },
  { name: 'google/gemini-3-pro@text', variable: 'GOOGLE_API_KEY', header: 'x-goog-api-key', shown: 'key-of-mine' },
  { name: 'gemini/gemini-3-pro@text', variable: 'GEMINI_API_KEY', header: 'x-goog-api-key', shown: 'key-of-mine' },
  {
    name: 'fireworks/accounts/fireworks/models/m@text',
    variable: 'FIREWORKS_API_KEY',
    header: 'authorization',
    shown: 'Bearer key-of-mine',
  },
  { name: 'deepseek/deepseek-chat@text', variable: 'DEEPSEEK_API_KEY', header: 'authorization', shown: 'Bearer key-of-mine' },
  { name: 'ollama/llama3.2@text', variable: 'UNUSED', header: 'authorization', shown: undefined },
])('$name is asked at its vendor, with the key of $variable', async ({ name, variable, header, shown }) => {
  environment({ [variable]: 'key-of-mine' })
  const upstream = await startUpstream()
  const http = rerouted(upstream.url)
  const { provider, model } = namedModel(name)
  let heard = ''
  const context = { http, signal: new AbortController().signal, sessionId: 's' }
  for await (const draft of provider.generate(toRequest({ model, messages: 'Hello' }), context)) {
    if (draft.type === 'response.delta' && draft.delta.type === 'text') heard += draft.delta.text
  }
  http.close()
  expect(heard).not.toBe('')
  expect(upstream.requests).toHaveLength(1)
  expect(upstream.requests[0]?.headers[header]).toBe(shown)
  expect(provider.secrets).toEqual(shown === undefined ? [] : ['key-of-mine'])
})

test('an agent has models by their names: the first, a fallback, and one with settings', async () => {
  const upstream = await startUpstream()
  environment({
    OPENAI_API_KEY: 'key-of-openai',
    OPENAI_BASE_URL: `${upstream.url}/openai/v1`,
    ANTHROPIC_API_KEY: 'key-of-anthropic',
    ANTHROPIC_BASE_URL: `${upstream.url}/anthropic`,
  })
  const agent = llmAgent({
    name: 'bot',
    model: 'openai/gpt-4.1@error-500',
    fallbacks: [modelOf('anthropic/claude-3-haiku@text', { settings: { temperature: 0.5 } })],
  })
  const { url } = await startServer(agent)
  const wire = await overWebSocket(url)
  await wire.open()
  expect(textOf(await say(wire, 'Hello'))).not.toBe('')
  expect(upstream.requests.at(-1)).toMatchObject({ vendor: 'anthropic', body: { model: 'claude-3-haiku@text', temperature: 0.5 } })
  expect(agent.secrets).toEqual(['key-of-openai', 'key-of-anthropic'])
  await agent.ready
  expect(agent.capabilities).toMatchObject({ context_window: 1_047_576 })
})

test('a model whose reader left while it was loaded is not asked', async () => {
  environment({ OPENAI_API_KEY: 'key-of-mine' })
  const upstream = await startUpstream()
  const http = rerouted(upstream.url)
  const { provider, model } = namedModel('openai/gpt-5.1@text')
  const context = { http, signal: new AbortController().signal, sessionId: 's' }
  const drafts = provider.generate(toRequest({ model, messages: 'Hello' }), context)[Symbol.asyncIterator]()
  const first = drafts.next()
  await drafts.return?.()
  expect(await first).toEqual({ done: true, value: undefined })
  http.close()
  expect(upstream.requests).toEqual([])
})

test.each(PROVIDER_NAMES.filter((name) => name !== 'ollama'))(
  'without a key for %s the agent is made, but not served, and not asked',
  async (name) => {
    environment()
    const variable = { google: 'GEMINI_API_KEY' }[name as string] ?? `${name.toUpperCase()}_API_KEY`
    const agent = llmAgent({ name: 'bot', model: `${name}/m` })
    const message = `The models of ${name} need a key: set ${variable}`
    await agent.ready
    expect(agent.capabilities).toMatchObject({ supports_streaming: true })
    await expect(startServer(agent)).rejects.toThrow(message)
    await expect(startServer(llmAgent({ name: 'desk', model: quiet(), handoffs: [agent] }))).rejects.toThrow(message)
    expect((await ask(namedModel(`${name}/m`).provider, { model: 'm', messages: 'Hello' })).error).toMatchObject({ message })
  },
)

test('an address that is none is told by its variable, and not shown', () => {
  environment({ OPENAI_API_KEY: 'key-of-mine', OPENAI_BASE_URL: 'https://me:secret@proxy.example/v1' })
  const { provider } = namedModel('openai/gpt-5')
  expect(() => provider.check?.()).toThrow(/openai cannot be asked: OPENAI_BASE_URL must not contain a name or a password/)
  expect(() => provider.check?.()).not.toThrow(/secret/)
})

test.each([
  ['opnai/gpt-5', /names the provider "opnai", but there are openai, anthropic, .*: did you mean "openai"\?$/],
  ['acme/gpt-5', /names the provider "acme", but there are openai, .*make a provider with its baseUrl$/],
  ['openai-compatible/m', /"openai-compatible\/m" has no address: make it with openaiCompatible\(/],
  ['gpt-5', /must be provider\/model, .* but is "gpt-5": did you mean "openai\/gpt-5"\?$/],
  ['gpt5', /but is "gpt5": did you mean "openai\/gpt-5"\?$/],
  ['claude-sonnet-4-5', /did you mean "anthropic\/claude-sonnet-4-5"\?$/],
  ['openai:gpt-5', /did you mean "openai\/gpt-5"\?$/],
  ['openai/', /but is "openai\/"$/],
  ['', /but is ""$/],
])('%j is refused when the agent is made', (name, message) => {
  environment()
  expect(() => llmAgent({ name: 'bot', model: name })).toThrow(message)
  expect(() => llmAgent({ name: 'bot', model: quiet(), fallbacks: [name] })).toThrow(message)
  expect(() => modelOf(name)).toThrow(message)
})

/** A model that needs no key. */
function quiet() {
  const provider: Provider = {
    name: 'quiet',
    capabilities: async (model) => ({
      id: model,
      provider: 'quiet',
      modalities: ['text'],
      supports_streaming: true,
      supports_thinking: false,
      supports_caching: false,
    }),
    async *generate() {
      yield text('hello')
    },
  }
  return modelOf(provider, 'm')
}
