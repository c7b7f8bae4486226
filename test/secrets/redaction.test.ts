import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { llmAgent, modelOf } from '../../src/agents/llm/index.ts'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import type { AgentPort } from '../../src/core/ports/agent.ts'
import { UampError } from '../../src/protocol/errors.ts'
import { anthropic } from '../../src/providers/anthropic/index.ts'
import { google } from '../../src/providers/google/index.ts'
import { openaiCompatible } from '../../src/providers/openai-compatible/index.ts'
import { openai } from '../../src/providers/openai/index.ts'
import { remoteA2a } from '../../src/remotes/a2a/index.ts'
import { remoteAgUi } from '../../src/remotes/ag-ui/index.ts'
import { remoteCompletions } from '../../src/remotes/completions/index.ts'
import { remoteEvents } from '../../src/remotes/events/index.ts'
import { pinoLog } from '../../src/server/node/log.ts'
import { startServer } from '../support/server.ts'
import { EVERY_WIRE } from './raw.ts'

/** With characters that JSON and addresses write otherwise. */
const KEY = 'sk-test/Qm9vZ2ll"5f3a+9c1d2e4b6'
/** What it may look like: none of these may be anywhere. */
const TRACES = [
  KEY,
  JSON.stringify(KEY).slice(1, -1),
  encodeURIComponent(KEY),
  Buffer.from(KEY).toString('base64').slice(0, 16),
  KEY.slice(0, 20),
]

const expectNoKey = (text: string): void => expect(TRACES.filter((trace) => text.includes(trace))).toEqual([])

/** An upstream that repeats in its refusal all that it was sent, in every form. */
async function echoing(status: number, { streamed = false } = {}): Promise<string> {
  const server = createServer((request: IncomingMessage, response: ServerResponse) => {
    request.resume()
    const sent = JSON.stringify(request.headers)
    const message = `Bad: ${sent} ${encodeURIComponent(KEY)} ${Buffer.from(`user:${KEY}`).toString('base64')} ${request.url}`
    const error = { error: { message, type: 'invalid_request_error', code: `code ${KEY}`, status: `status ${KEY}` } }
    if (!streamed) return void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(error))
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.end(`event: error\ndata: ${JSON.stringify({ type: 'error', ...error })}\n\n`)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

async function started(agent: AgentPort) {
  const lines: string[] = []
  const server = await startServer(agent, { log: pinoLog({ level: 'debug', to: { write: (line) => void lines.push(line) } }) })
  const metrics = async (): Promise<string> => (await fetch(`${server.url}/metrics`)).text()
  return { ...server, lines, metrics }
}

const failing = defineAgent('bot', async function* (turn) {
  await turn.http
    .request({
      url: 'http://127.0.0.1:9/',
      method: 'GET',
      headers: { authorization: `Bearer ${KEY}` },
      signal: turn.signal,
      maxBytes: 1024,
      timeouts: { firstByteMs: 1_000, idleMs: 1_000, totalMs: 1_000 },
    })
    .catch(() => undefined)
  throw new UampError('invalid_request', `The key ${KEY} is not right, nor is ${JSON.stringify({ KEY })} or ${encodeURIComponent(KEY)}`, {
    details: { sent: { headers: [`Bearer ${KEY}`] }, basic: Buffer.from(KEY).toString('base64') },
    cause: new Error(`deeper: ${KEY}`, { cause: { authorization: KEY } }),
  })
})

describe.each(Object.entries(EVERY_WIRE))('%s', (_, fire) => {
  test('an error that repeats a key reaches nobody with it: neither client, log nor metrics', async () => {
    const { url, lines, metrics } = await started(failing)
    const answer = await fire(url, 'Hello')
    expect(answer).toContain('[redacted]')
    expectNoKey(answer)
    expect(lines.join('')).toContain('deeper')
    expectNoKey(lines.join(''))
    expectNoKey(await metrics())
  })
})

const vendors: Readonly<Record<string, (url: string) => AgentPort>> = {
  openai: (url) => model(openai({ apiKey: KEY, baseUrl: url, retries: 0 })),
  anthropic: (url) => model(anthropic({ apiKey: KEY, baseUrl: url, retries: 0 })),
  google: (url) => model(google({ apiKey: KEY, baseUrl: url, retries: 0 })),
  compatible: (url) => model(openaiCompatible({ name: 'own', apiKey: KEY, baseUrl: url, retries: 0 })),
  'a header of another name': (url) => model(openai({ apiKey: 'unused-key', headers: { 'x-team-pass': KEY }, baseUrl: url, retries: 0 })),
  'remote events': (url) => remoteEvents({ name: 'bot', url, token: KEY }),
  'remote A2A': (url) => remoteA2a({ name: 'bot', url, token: KEY }),
  'remote AG-UI': (url) => remoteAgUi({ name: 'bot', url, token: KEY }),
  'remote completions': (url) => remoteCompletions({ name: 'bot', url, model: 'm', apiKey: KEY }),
  'a remote with a header of another name': (url) => remoteCompletions({ name: 'bot', url, model: 'm', headers: { 'x-team-pass': KEY } }),
  'a key in the address': (url) => remoteAgUi({ name: 'bot', url: `${url}/run?key=${encodeURIComponent(KEY)}` }),
  'a password in the address': (url) => remoteAgUi({ name: 'bot', url: url.replace('//', `//user:${encodeURIComponent(KEY)}@`) }),
}

function model(provider: Parameters<typeof modelOf>[0]): AgentPort {
  return llmAgent({ name: 'bot', model: modelOf(provider, 'm') })
}

describe.each(Object.entries(vendors))('%s', (_, make) => {
  test.each([
    [400, false],
    [401, false],
    [429, false],
    [500, false],
    [200, true],
  ])('whose upstream repeats the key with %d, streamed %s', async (status, streamed) => {
    const { url, lines } = await started(make(await echoing(status, { streamed })))
    const fire = EVERY_WIRE['UAMP events, HTTP and SSE']
    expectNoKey(String(await fire?.(url, 'Hello')))
    expectNoKey(lines.join(''))
  })
})
