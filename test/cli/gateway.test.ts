import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { ollamaUrl } from '../../src/config/detect.ts'
import { ask } from '../openai/support.ts'
import { startUpstream } from '../providers/upstream/index.ts'
import { startServer } from '../support/server.ts'
import { say } from '../support/talk.ts'
import { verifies } from '../support/verifies.ts'
import { overWebSocket } from '../support/wire.ts'
import { project, serving } from './run.ts'

const KEYS = { OPENAI_API_KEY: 'a-fake-key', ANTHROPIC_API_KEY: 'a-fake-key', UAMP_DATA: 'memory' }
const WEATHER = `export const weather = {
  name: 'weather',
  description: 'The weather in a city',
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  run: ({ city }) => ({ city, sky: 'green' }),
}`

async function completion(url: string, model: string, content: string) {
  const { body, status } = await ask(`${url}/v1/chat/completions`, { model, messages: [{ role: 'user', content }] })
  return { status, body, text: body.choices?.[0].message.content as string }
}

async function agentsOf(url: string): Promise<string[]> {
  const { agents } = (await (await fetch(`${url}/agents`)).json()) as { agents: { name: string }[] }
  return agents.map(({ name }) => name)
}

verifies(
  'gateway.models',
  'a config gives models with instructions, settings, tools, fallbacks and prices, on several providers',
  async () => {
    const upstream = await startUpstream()
    const cwd = await project({
      'tools.ts': WEATHER,
      'uamp.config.yaml': `
agents:
  - name: one
    description: The first
    model: openai/echo
    instructions: Be kind
    settings: { temperature: 0.25 }
  - name: two
    model: anthropic/tools
    tools: [./tools.ts]
  - name: three
    model: mine/error-500
    fallbacks: [openai/echo]
  - name: four
    model: hung/silent
    fallbacks: [openai/echo]
defaultAgent: one
prices:
  openai/echo: { input: 1000000, output: 1000000 }
providers:
  openai: { baseUrl: "${upstream.url}/openai/v1" }
  anthropic: { baseUrl: "\${BASE}/anthropic", apiKeyEnv: OTHER_KEY }
  mine: { baseUrl: "${upstream.url}/compatible/v1", retries: 0 }
  hung: { type: anthropic, baseUrl: "${upstream.url}/anthropic", timeouts: { firstByteMs: 100 } }
`,
    })
    const { url } = await serving([], { cwd, env: { ...KEYS, BASE: upstream.url, OTHER_KEY: 'another-key' } })
    expect(await agentsOf(url)).toEqual(['one', 'two', 'three', 'four'])

    const first = await completion(url, 'one', 'Say this')
    expect(first.text).toContain('Say this')
    expect(first.body.usage.cost.total_cost).toBeGreaterThan(0)
    expect(JSON.stringify(upstream.requests.at(-1)?.body)).toContain('Be kind')
    expect(upstream.requests.at(-1)?.body).toMatchObject({ temperature: 0.25 })

    const wire = await overWebSocket(url)
    const session = await wire.open({ agent: 'two' })
    const events = await say(wire, 'How is the weather?', { session })
    expect(events.at(-1)?.['response'].output).toEqual(
      expect.arrayContaining([
        expect.objectContaining({
          type: 'tool_result',
          tool_result: expect.objectContaining({ result: expect.stringContaining('green') }),
        }),
      ]),
    )
    expect(upstream.requests.at(-1)?.headers).toMatchObject({ 'x-api-key': 'another-key' })

    expect((await completion(url, 'three', 'Say that')).text).toContain('Say that')
    expect((await completion(url, 'four', 'Say it')).text).toContain('Say it')
  },
)

verifies('gateway.remotes', 'a config gives agents of other servers', async () => {
  const there = await startServer(demo(), { tokens: { alice: 'her-secret-0123456789abcdef' } })
  const cwd = await project({
    'uamp.config.json': JSON.stringify({
      agents: [
        { name: 'native', remote: { url: there.url, agent: 'demo', tokenEnv: 'THEIR_TOKEN' } },
        { name: 'socket', remote: { url: there.url.replace('http', 'ws'), agent: 'demo', tokenEnv: 'THEIR_TOKEN' } },
        { name: 'openai-like', remote: { url: '${THERE}/v1', protocol: 'completions', model: 'demo', token: '${THEIR_TOKEN}' } },
      ],
    }),
  })
  const { url } = await serving([], { cwd, env: { THERE: there.url, THEIR_TOKEN: 'her-secret-0123456789abcdef', UAMP_DATA: 'memory' } })
  for (const agent of ['native', 'socket', 'openai-like']) expect((await completion(url, agent, 'hello')).text).toBe('You said: hello')
})

verifies(['gateway.models', 'gateway.remotes'], 'a config offers a model and a remote agent through some protocols only', async () => {
  const upstream = await startUpstream()
  const there = await startServer(demo())
  const entries = (first: string): string => `
agents:
  - { name: one, model: openai/echo, protocols: [${first}] }
  - { name: far, remote: "${there.url}", protocols: [a2a] }
  - { name: whole, remote: "${there.url}" }
providers:
  openai: { baseUrl: "${upstream.url}/openai/v1" }
`
  const cwd = await project({ 'uamp.config.yaml': entries('completions') })
  const { url, cli } = await serving([], { cwd, env: KEYS })
  const statuses = (path: string) =>
    Promise.all(['one', 'far', 'whole'].map(async (name) => (await fetch(`${url}/agents/${name}${path}`)).status))
  expect(await statuses('/v1/models')).toEqual([200, 404, 200])
  expect(await statuses('/.well-known/agent-card.json')).toEqual([404, 200, 200])
  await writeFile(join(cwd, 'uamp.config.yaml'), entries('a2a'))
  await cli.prints(/was read again: one changed/)
  expect(await statuses('/v1/models')).toEqual([404, 404, 200])
  expect(await statuses('/.well-known/agent-card.json')).toEqual([200, 200, 200])
})

verifies('gateway.modules', 'a config that is a module has entries of every kind, and hands over from one to another', async () => {
  const upstream = await startUpstream()
  const cwd = await project({
    'uamp.config.ts': `
import { defineAgent, text, type AgentPort } from 'uamp'
const own: AgentPort = defineAgent('own', async function* () { yield text('I am code') })
export default {
  agents: [own, './other.js', { name: 'model', model: 'ollama/echo', handoffs: ['own', 'other'] }],
  providers: { ollama: { baseUrl: '${upstream.url}/ollama/v1' } },
}`,
    'other.js': `import { defineAgent, text } from 'uamp'\nexport default defineAgent('other', async function* () { yield text('I am a file') })`,
  })
  const { url } = await serving([], { cwd })
  expect(await agentsOf(url)).toEqual(['own', 'other', 'model'])
  expect((await completion(url, 'own', 'hi')).text).toBe('I am code')
  expect((await completion(url, 'other', 'hi')).text).toBe('I am a file')
  expect((await completion(url, 'model', 'hello')).text).toContain('hello')
  expect(upstream.requests.at(-1)?.body).toMatchObject({
    tools: [{ function: { name: 'transfer_to_own' } }, { function: { name: 'transfer_to_other' } }],
  })
})

verifies('gateway.mcp', 'the tools of an MCP server are those of an agent, and it ends with the server', async () => {
  const upstream = await startUpstream()
  const sdk = (path: string): string => pathToFileURL(`node_modules/@modelcontextprotocol/sdk/dist/esm/${path}`).href
  const cwd = await project({
    'weather.mjs': `
import { McpServer } from '${sdk('server/mcp.js')}'
import { StdioServerTransport } from '${sdk('server/stdio.js')}'
import { z } from '${pathToFileURL('node_modules/zod/index.js').href}'
const server = new McpServer({ name: 'weather', version: '1' })
server.registerTool('weather', { description: 'The weather', inputSchema: { city: z.string() } }, ({ city }) => ({
  content: [{ type: 'text', text: city + ' is under a ' + process.env.SKY + ' sky' }],
}))
await server.connect(new StdioServerTransport())
`,
    'uamp.config.yaml': `
agents:
  - name: one
    model: openai/tools
    mcp:
      - command: ${process.execPath}
        args: [weather.mjs]
        env: { SKY: "\${COLOUR}" }
providers:
  openai: { baseUrl: "${upstream.url}/openai/v1" }
`,
  })
  const { url, cli } = await serving([], { cwd, env: { ...KEYS, COLOUR: 'purple' } })
  const wire = await overWebSocket(url)
  await wire.open()
  const events = await say(wire, 'How is the weather?')
  expect(JSON.stringify(events.at(-1)?.['response'].output)).toContain('under a purple sky')
  cli.signal('SIGTERM')
  expect(await cli.exit()).toBe(0)
})

verifies('gateway.limits', 'a config sets limits', async () => {
  const cwd = await project({ 'uamp.config.yaml': 'agents:\n  - name: one\n    model: ollama/m\nlimits:\n  bodyBytes: 300\n' })
  const { url } = await serving([], { cwd })
  expect(await completion(url, 'one', 'x'.repeat(400))).toMatchObject({ status: 413 })
})

verifies('gateway.detected', 'without a config, models that there is a key for are beside the demo', async () => {
  const upstream = await startUpstream()
  const addresses = {
    OPENAI_BASE_URL: `${upstream.url}/openai/v1`,
    ANTHROPIC_BASE_URL: `${upstream.url}/anthropic`,
    GOOGLE_GEMINI_BASE_URL: `${upstream.url}/google`,
  }
  const { url, cli } = await serving([], { cwd: await project(), env: { ...KEYS, ...addresses, GEMINI_API_KEY: 'a-fake-key' } })
  expect(await agentsOf(url)).toEqual(['demo', 'openai', 'anthropic', 'gemini'])
  expect(cli.stdout).toContain('openai is gpt-5-mini, as OPENAI_API_KEY is set')
  expect(cli.stdout).not.toContain('a-fake-key')
  for (const agent of ['openai', 'anthropic', 'gemini']) expect((await completion(url, agent, 'Say this')).text).toContain('Say this')
  expect((await completion(url, '', 'hi')).text).toBe('You said: hi')
})

verifies('gateway.ollama', 'without a config, a model of the Ollama on this machine is beside the demo', async () => {
  const upstream = await startUpstream()
  const server = createServer((request, response) => {
    if (request.url === '/api/tags') response.end(JSON.stringify({ models: [{ name: 'nomic-embed-text:latest' }, { name: 'echo' }] }))
    else response.writeHead(307, { location: `${upstream.url}/ollama${request.url}` }).end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  const { url, cli } = await serving([], { cwd: await project(), env: { OLLAMA_HOST: host, UAMP_DATA: 'memory' } })
  expect(await agentsOf(url)).toEqual(['demo', 'ollama'])
  expect(cli.stdout).toContain(`ollama is echo, of the Ollama at http://${host}`)
})

verifies('gateway.ollama-silent', 'an Ollama that does not answer holds nothing up', async () => {
  const server = createServer(() => undefined)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  const { url } = await serving([], { cwd: await project(), env: { OLLAMA_HOST: host, UAMP_DATA: 'memory' } })
  expect(await agentsOf(url)).toEqual(['demo'])
})

test.each([
  [undefined, 'http://127.0.0.1:11434'],
  ['0.0.0.0', 'http://127.0.0.1:11434'],
  ['localhost:1234', 'http://localhost:1234'],
  ['http://[::1]:99', 'http://[::1]:99'],
  ['192.168.0.7:11434', undefined],
  ['https://ollama.example', undefined],
  ['not a host', undefined],
])('only an Ollama on this machine is asked: %s', (host, url) => {
  expect(ollamaUrl(host)).toBe(url)
})
