import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { Agent } from '../../src/agents/agent.ts'
import { llmAgent, modelOf } from '../../src/agents/llm/index.ts'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { text } from '../../src/core/agent-kit/drafts.ts'
import type { Logger } from '../../src/core/ports/transport.ts'
import { UampError } from '../../src/protocol/errors.ts'
import { openai } from '../../src/providers/openai/index.ts'
import { remoteAcp } from '../../src/remotes/acp/index.ts'
import { mcpSkill } from '../../src/skills/mcp/index.ts'
import { startServer } from '../support/server.ts'
import { EVERY_WIRE, post, type Fire } from './raw.ts'

const KEY = 'sk-seam-0123456789abcdef'

const overSse = EVERY_WIRE['UAMP events, HTTP and SSE'] as Fire

async function listening(handle: (request: IncomingMessage, body: string) => { status: number; body: string }): Promise<string> {
  const server = createServer((request, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', (chunk: string) => (body += chunk))
    request.on('end', () => {
      const answer = handle(request, body)
      response.writeHead(answer.status, { 'content-type': 'application/json' }).end(answer.body)
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** Repeats its headers. */
const echo = () => listening((request) => ({ status: 400, body: JSON.stringify({ error: { message: JSON.stringify(request.headers) } }) }))

test('a key that comes later, as a config is read again, is known from then on; the one before still is', async () => {
  const url = await echo()
  const bot = (apiKey: string) => llmAgent({ name: 'bot', model: modelOf(openai({ apiKey, baseUrl: url, retries: 0 }), 'm') })
  const server = await startServer(bot(`${KEY}-old`))
  server.agents.add(bot(`${KEY}-new`))
  const broken = defineAgent('broken', async function* () {
    throw new UampError('provider_error', `${KEY}-old and ${KEY}-new`)
  })
  server.agents.add(broken)
  expect(await overSse(`${server.url}/agents/broken`, 'Hello')).toContain('"[redacted] and [redacted]"')
  expect(await overSse(`${server.url}/agents/bot`, 'Hello')).not.toContain(KEY)
})

test('tokens of callers, and keys in the environment', async () => {
  process.env['SEAM_TEST_API_KEY'] = `${KEY}-env`
  onTestFinished(() => void delete process.env['SEAM_TEST_API_KEY'])
  const broken = defineAgent('bot', async function* () {
    throw new UampError('provider_error', `${KEY}-env, ${KEY}-caller`)
  })
  const { url } = await startServer(broken, { tokens: { alice: `${KEY}-caller` } })
  const answer = await post(
    `${url}/v1/chat/completions`,
    { messages: [{ role: 'user', content: 'x' }] },
    { authorization: `Bearer ${KEY}-caller` },
  )
  expect(answer).toContain('"message":"[redacted], [redacted]"')
})

test('a tool that fails, and the log of a model that fails before another', async () => {
  const url = await echo()
  const lines: string[] = []
  const log: Logger = (_, message, fields) => void lines.push(`${message} ${JSON.stringify(fields)}`)
  const tool = {
    name: 'leak',
    run: () => {
      throw new Error(`The other side said: ${KEY} is not right`)
    },
  }
  const asks = defineAgent('asks', async function* () {
    yield text('never')
  })
  const model = modelOf(openai({ apiKey: KEY, baseUrl: url, retries: 0 }), 'm')
  const bot = llmAgent({ name: 'bot', model, fallbacks: [model], log, handoffs: [asks] })
  const calls = new Agent({
    name: 'calls',
    tools: [tool],
    handlers: [
      {
        name: 'call',
        subscribes: ['input.text'],
        async *process(_, turn) {
          yield* turn.runTools([{ id: 'c1', name: 'leak', arguments: '{}' }])
        },
      },
    ],
  })
  const server = await startServer([bot, calls])
  expect(await overSse(`${server.url}/agents/bot`, 'Hello')).not.toContain(KEY)
  expect(lines.join('\n')).toContain('A model failed')
  expect(lines.join('\n')).not.toContain(KEY)
  const answer = await overSse(`${server.url}/agents/calls`, 'Hello')
  expect(answer).toContain('The other side said: [redacted] is not right')
  expect(answer).not.toContain(KEY)
})

test('a route of a skill, and one that is refused before it', async () => {
  const skill = {
    name: 'own',
    secrets: [KEY],
    routes: () => [
      {
        method: 'GET' as const,
        path: '/own',
        access: 'public' as const,
        handle: async () => {
          throw new UampError('provider_error', `No: ${KEY}`, { details: { url: `https://x/?k=${KEY}` } })
        },
      },
    ],
  }
  const { url } = await startServer(new Agent({ name: 'bot', skills: [skill] }))
  const answer = await (await fetch(`${url}/own`)).text()
  expect(answer).toContain('No: [redacted]')
  expect(answer).not.toContain(KEY)
})

test('MCP servers: what they were shown is not repeated, whether they start or not', async () => {
  const url = await echo()
  const failed = await mcpSkill({ name: 'far', server: { url, headers: { 'x-team': KEY } } }).catch((thrown: unknown) => thrown as Error)
  expect((failed as Error).message).toContain('[redacted]')
  expect((failed as Error).message).not.toContain(KEY)
  const program = {
    command: process.execPath,
    args: ['-e', 'console.error(process.env.TEAM_TOKEN); process.exit(1)'],
    env: { TEAM_TOKEN: KEY },
  }
  const died = await mcpSkill({ name: 'near', server: program }).catch((thrown: unknown) => thrown as Error)
  expect(`${String(died)} ${String((died as Error).cause)}`).not.toContain(KEY)
  expect((died as Error).message).toContain('[redacted]')
})

test('a program that is an agent', async () => {
  const bot = remoteAcp({
    name: 'bot',
    command: process.execPath,
    args: ['-e', 'console.error(process.env.TEAM_TOKEN); process.exit(1)'],
    env: { TEAM_TOKEN: KEY },
    folder: '.',
  })
  onTestFinished(() => bot.close())
  const server = await startServer(bot)
  expect(await overSse(server.url, 'Hello')).not.toContain(KEY)
  expect(JSON.stringify(server.logged.map(({ fields }) => String(fields?.['error'])))).not.toContain(KEY)
})

test('cards and webhooks', async () => {
  const bodies: string[] = []
  const hook = await listening((_, body) => {
    bodies.push(body)
    return { status: 200, body: '{}' }
  })
  const bot = defineAgent(
    'bot',
    async function* () {
      yield text(`The key is ${KEY}. `)
      throw new UampError('provider_error', `It was ${KEY}`)
    },
    { description: `Knows ${KEY}`, secrets: [KEY] },
  )
  const { url } = await startServer(bot, { outbound: { allow: ['127.0.0.1'] } })
  const card = await (await fetch(`${url}/.well-known/agent-card.json`)).text()
  expect(card).toContain('Knows [redacted]')
  expect(card).not.toContain(KEY)
  const configuration = { taskPushNotificationConfig: { url: `${hook}/?key=${KEY}`, token: 'hook-token-123456' } }
  const message = { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'Hello' }] }
  await post(`${url}/a2a`, { jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message, configuration } })
  await expect.poll(() => bodies.join('\n')).toContain('TASK_STATE_FAILED')
  expect(bodies.join('\n')).toContain('It was [redacted]')
  expect(bodies.join('\n')).not.toContain(KEY)
})

test('credentials of a webhook are in no line of the log', async () => {
  const hook = await listening((request) => ({ status: 500, body: JSON.stringify(request.headers) }))
  const bot = defineAgent('bot', async function* () {
    yield text('fine')
  })
  const server = await startServer(bot, { outbound: { allow: ['127.0.0.1'] }, a2a: { pushLimits: { attempts: 1 } } })
  const authentication = { scheme: 'Bearer', credentials: 'hook-credentials-123456' }
  const places = [`${hook}/?key=hook-key-123456`, 'http://127.0.0.1:9/?key=hook-key-123456']
  for (const url of places) {
    const configuration = { taskPushNotificationConfig: { url, token: 'hook-token-123456', authentication } }
    const message = { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'Hello' }] }
    await post(`${server.url}/a2a`, { jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message, configuration } })
  }
  // The first of each webhook; the others are told at a lower level.
  await expect.poll(() => server.logged.filter(({ level }) => level === 'warn')).toHaveLength(2)
  expect(JSON.stringify(server.logged)).toContain('A push notification was dropped')
  expect(JSON.stringify(server.logged)).not.toContain('hook-')
})
