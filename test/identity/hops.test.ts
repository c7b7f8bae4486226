import { fileURLToPath } from 'node:url'
import { tmpdir } from 'node:os'
import { expect, onTestFinished, test } from 'vitest'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { remoteAcp } from '../../src/remotes/acp/index.ts'
import { startServer } from '../support/server.ts'
import { say } from '../support/talk.ts'
import { verifies } from '../support/verifies.ts'
import { overWebSocket } from '../support/wire.ts'
import { KINDS } from './kinds.ts'

/** Passes messages on between standard input and output and a server's WebSocket. */
const RELAY = fileURLToPath(new URL('acp-relay.js', import.meta.url))

/** Each way to stand for the agent `of` of the server at `url`. */
const WAYS = {
  ...KINDS,
  ACP: ({ name, url, of }: { name: string; url: string; of: string }) => {
    const address = `${url.replace('http', 'ws')}/agents/${of}/acp`
    const agent = remoteAcp({ name, command: process.execPath, args: [RELAY, address], folder: tmpdir() })
    onTestFinished(() => agent.close())
    return agent
  },
}
type Way = keyof typeof WAYS
const ways = Object.keys(WAYS) as Way[]

const REASON = 'too_many_hops'
const CIRCLE = { type: 'response.error', error: { code: 'invalid_request', details: { reason: REASON } } }

/** Two servers whose agents `a` and `b` stand for each other. */
async function circle(there: Way, back: Way) {
  const one = await startServer(defineAgent('demo', async function* () {}))
  const other = await startServer(WAYS[back]({ name: 'b', url: one.url, of: 'a' }))
  one.agents.add(WAYS[there]({ name: 'a', url: other.url, of: 'b' }))
  return { one, other }
}

async function answerOf(url: string, agent: string) {
  const wire = await overWebSocket(url, { path: `/agents/${agent}/uamp` })
  await wire.open()
  return say(wire, 'hello')
}

const MIXED: readonly (readonly [Way, Way])[] = [
  ...ways.map((way) => [way, way] as const),
  ...ways.map((way, index) => [way, ways[(index + 1) % ways.length] as Way] as const),
]

for (const [there, back] of MIXED) {
  verifies('hops.circle', `there by ${there}, back by ${back}`, async () => {
    const { one } = await circle(there, back)
    const events = await answerOf(one.url, 'a')
    expect(events.at(-1)).toMatchObject(CIRCLE)
    // One hop a server: the ninth comes back refused.
    expect(JSON.stringify(events.at(-1)).match(/too_many_hops/g)?.length).toBeLessThanOrEqual(3)
  })
}

test.each(ways)('an agent that names itself, over %s', async (way) => {
  const server = await startServer(defineAgent('demo', async function* () {}))
  server.agents.add(WAYS[way]({ name: 'self', url: server.url, of: 'self' }))
  const events = await answerOf(server.url, 'self')
  expect(events.at(-1)).toMatchObject(CIRCLE)
})

/** What each protocol is sent, with a field for the hops where it has one, and how it refuses. */
const message = { role: 'user', parts: [{ kind: 'text', text: 'hi' }], messageId: 'm' }
const run = { threadId: 't', runId: 'r', state: {}, messages: [{ id: '1', role: 'user', content: 'hi' }], tools: [], context: [] }
const rpc = { jsonrpc: '2.0', id: 1, method: 'message/send' }
const events = (extensions: object) => [
  { type: 'session.create', event_id: 'c', uamp_version: '1.0', session: { modalities: ['text'], extensions } },
  { type: 'input.text', event_id: 'i', text: 'hi' },
  { type: 'response.create', event_id: 'r' },
]
const FORMS = {
  '/events': {
    body: (hops: unknown) => events({ uamp: { hops } }),
    refused: { error: { code: 'invalid_request', details: { reason: REASON } } },
  },
  '/ag-ui': { body: (hops: unknown) => ({ ...run, forwardedProps: { uamp: { hops } } }), refused: { error: { code: 'invalid_request' } } },
  '/a2a': {
    body: (hops: unknown) => ({ ...rpc, params: { message: { ...message, metadata: { uamp: { hops } } } } }),
    refused: { error: { code: -32602 } },
  },
  '/v1/chat/completions': {
    body: () => ({ model: 'hi', messages: [{ role: 'user', content: 'hi' }] }),
    refused: { error: { code: REASON } },
  },
  '/v1/responses': { body: () => ({ model: 'hi', input: 'hi' }), refused: { error: { code: REASON } } },
} as const
const hi = () =>
  startServer(
    defineAgent('hi', async function* () {
      yield 'hi'
    }),
  )

async function refusal(
  url: string,
  path: keyof typeof FORMS,
  given: { header?: string; field?: unknown; limit?: number },
): Promise<unknown> {
  const headers = { 'content-type': 'application/json', ...(given.header !== undefined && { 'uamp-hops': given.header }) }
  const response = await fetch(url + path, { method: 'POST', headers, body: JSON.stringify(FORMS[path].body(given.field)) })
  const text = await response.text()
  return text.includes(REASON) ? JSON.parse(text.replace(/^data: /, '')) : undefined
}

for (const path of Object.keys(FORMS) as (keyof typeof FORMS)[]) {
  verifies('hops.limit', `eight servers may pass a request on to ${path}, and nine may not`, async () => {
    const { url } = await hi()
    expect(await refusal(url, path, { header: '8' })).toBeUndefined()
    expect(await refusal(url, path, { header: '9' })).toMatchObject(FORMS[path].refused)
  })
}

verifies('hops.highest', 'a field cannot take back what the header says, nor the other way round', async () => {
  const { url } = await hi()
  for (const path of ['/events', '/ag-ui', '/a2a'] as const) {
    expect(await refusal(url, path, { header: '9', field: 0 }), path).toMatchObject(FORMS[path].refused)
    expect(await refusal(url, path, { header: '0', field: 9 }), path).toMatchObject(FORMS[path].refused)
    expect(await refusal(url, path, { field: 9 }), path).toMatchObject(FORMS[path].refused)
    expect(await refusal(url, path, { header: '9', field: 'none' }), path).toMatchObject(FORMS[path].refused)
  }
})

verifies('hops.highest', 'what is no count counts as none', async () => {
  const { url } = await hi()
  for (const header of ['', '-9', '9.5', '0x9', 'nine', '9e1', ' ', '9'.repeat(80)]) {
    expect(await refusal(url, '/v1/chat/completions', { header }), header).toBeUndefined()
  }
  for (const field of [null, -9, 9.5, Infinity, 'nine', [9], { hops: 9 }, true]) {
    expect(await refusal(url, '/events', { field }), String(field)).toBeUndefined()
  }
  // A proxy may have joined two of them.
  expect(await refusal(url, '/v1/chat/completions', { header: '1, 9' })).toMatchObject({ error: { code: REASON } })
})

verifies('hops.limit', 'a session on a socket is refused by its field, and the socket goes on', async () => {
  const { url } = await hi()
  const create = { session: { modalities: ['text'], extensions: { uamp: { hops: 9 } } } }
  const wire = await overWebSocket(url)
  await expect(wire.open(create)).rejects.toMatchObject({ refusal: { error: { code: 'invalid_request', details: { reason: REASON } } } })
  // The socket itself goes on.
  await wire.open()
  expect((await say(wire, 'hello')).at(-1)).toMatchObject({ type: 'response.done' })
})

verifies('hops.limit', 'the limit is a setting', async () => {
  const { url } = await startServer(
    defineAgent('hi', async function* () {}),
    { limits: { hops: 2 } },
  )
  expect(await refusal(url, '/events', { header: '2' })).toBeUndefined()
  expect(await refusal(url, '/events', { header: '3' })).toMatchObject({ error: { details: { reason: REASON, limit: 2 } } })
})
