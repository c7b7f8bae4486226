import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import { Hono } from 'hono'
import { expect, onTestFinished, test } from 'vitest'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import type { Logger } from '../../src/core/ports/transport.ts'
import { createAgentApp } from '../../src/serve/index.ts'
import { createWebApp } from '../../src/serve/web.ts'
import { startServer } from '../support/server.ts'

const agent = () =>
  defineAgent('one', async function* (turn) {
    if (turn.messages.at(-1)?.content === 'fail') throw new Error('a secret place in the code')
    for (let i = 0; i < 3; i++) yield `word ${i} `
  })

const options = { tokens: { alice: 'wonderland-7b1f9c04' }, accessLog: true, data: 'memory', allowedHosts: ['x'] }
type Logged = { readonly message: string; readonly fields: Readonly<Record<string, unknown>> | undefined }[]
type Send = (request: Request) => Promise<Response>

interface Placed {
  readonly send: Send
  readonly logged: Logged
}

function logging(): { readonly log: Logger; readonly logged: Logged } {
  const logged: Logged = []
  return { log: (_, message, fields) => void logged.push({ message, fields }), logged }
}

/** Answers the requests of tests by HTTP, which `fetch` sends to a made-up host otherwise. */
async function listening(listener: Parameters<typeof createServer>[1]): Promise<string> {
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

function over(url: string): Send {
  return (request) => fetch(new Request(request.url.replace('http://x', url), request))
}

function mounted(place: (app: ReturnType<typeof createAgentApp>) => Promise<Send> | Send, prefix = ''): () => Promise<Placed> {
  return async () => {
    const { log, logged } = logging()
    const app = createAgentApp(agent(), { ...options, prefix, log })
    onTestFinished(() => app.close({ graceMs: 0 }))
    return { send: await place(app), logged }
  }
}

const PLACES: Readonly<Record<string, () => Promise<Placed>>> = {
  'a server of ours': async () => {
    const { log, logged } = logging()
    const { url } = await startServer(agent(), { ...options, log })
    return { send: over(url), logged }
  },
  'a server of ours with a route of the user': async () => {
    const { log, logged } = logging()
    const { url, app } = await startServer(agent(), { ...options, log })
    app.use('*', (_, next) => next())
    return { send: over(url), logged }
  },
  'the web handler': async () => {
    const { log, logged } = logging()
    const app = createWebApp(agent(), { ...options, log })
    onTestFinished(() => app.close({ graceMs: 0 }))
    return { send: async (request) => app.fetch(request), logged }
  },
  'node:http': mounted(async ({ handleRequest }) => over(await listening((request, response) => void handleRequest(request, response)))),
  'a framework that hands over web requests': mounted((app) => async (request) => app.fetch(request)),
  'Hono, route': mounted(({ app }) => {
    const site = new Hono().route('/ai', app)
    return async (request) =>
      site.fetch(new Request(request.url.replace('http://x', 'http://x/ai'), request), { shared: 'by all requests' })
  }, '/ai'),
  'Hono on Node, mount': mounted(async ({ fetch }) => {
    const site = new Hono().mount('/ai', fetch)
    const listener = getRequestListener(site.fetch)
    const url = await listening((request, response) => void listener(request, response))
    return over(`${url}/ai`)
  }, '/ai'),
}

const token = { authorization: `Bearer ${options.tokens.alice}` }
const json = { ...token, 'content-type': 'application/json' }
const post = (body: string | object, headers: object = json) => ({
  method: 'POST',
  headers: headers as Record<string, string>,
  body: typeof body === 'string' ? body : JSON.stringify(body),
})
const messages = (content: string) => [{ role: 'user', content }]

/** What is refused, with its status: before a route is found, by the server, by each protocol, and by an agent. */
const REFUSED: readonly (readonly [what: string, path: string, init: RequestInit, status: number])[] = [
  ['no token', '/v1/models', {}, 401],
  ['a wrong token', '/v1/chat/completions', post('{}', { authorization: 'Bearer wrong' }), 401],
  ['nothing there', '/nowhere', { headers: token }, 404],
  ['no such agent', '/agents/nobody/v1/models', { headers: token }, 404],
  ['another method', '/v1/chat/completions', { method: 'DELETE', headers: token }, 405],
  ['a page of another origin', '/v1/models', { headers: { ...token, origin: 'https://elsewhere.example' } }, 403],
  ['a URL that is too long', `/v1/models?${'x'.repeat(9_000)}`, { headers: token }, 414],
  ['completions: no JSON', '/v1/chat/completions', post('no'), 400],
  ['completions: another shape', '/v1/chat/completions', post({ messages: 1 }), 400],
  ['responses: another shape', '/v1/responses', post({ input: 1 }), 400],
  ['responses: one that is not there', '/v1/responses/resp_none', { headers: token }, 404],
  ['events: no JSON', '/events', post('no'), 400],
  ['a2a: another method', '/a2a', post({ jsonrpc: '2.0', id: 1, method: 'no' }), 200],
  ['a2a, REST: no task', '/a2a/rest/v1/tasks/none', { headers: token }, 404],
  ['ag-ui: another shape', '/ag-ui', post({ threadId: 1 }), 400],
  ['an agent that fails', '/v1/chat/completions', post({ model: 'one', messages: messages('fail') }), 500],
]

test.each(Object.entries(PLACES))('%s: every refusal tells the id, and has one line', async (_, place) => {
  const { send, logged } = await place()
  for (const [what, path, init, status] of REFUSED) {
    logged.length = 0
    const id = `mine-${what.replaceAll(/\W+/g, '-')}`
    const headers = { ...(init.headers as Record<string, string>), 'x-request-id': id }
    const answer = await send(new Request(`http://x${path}`, { ...init, headers }))
    await answer.text()
    expect([what, answer.status, answer.headers.get('x-request-id')]).toEqual([what, status, id])
    await expect.poll(() => logged.filter(({ message }) => message === 'Request')).toHaveLength(1)
    for (const { fields } of logged) expect(fields).toMatchObject({ request_id: id })
    expect(logged.at(-1)?.fields).toMatchObject({ status, request_id: id })
  }
})

test.each(Object.entries(PLACES))('%s: two requests have two ids, and a stream has its line at its end', async (_, place) => {
  const { send, logged } = await place()
  const ask = () => send(new Request('http://x/v1/chat/completions', post({ model: 'one', messages: messages('Hello'), stream: true })))
  const [one, two] = await Promise.all([ask(), ask()])
  const ids = [one, two].map(({ headers }) => headers.get('x-request-id'))
  expect(ids[0]).toMatch(/^req_/)
  expect(ids[1]).not.toBe(ids[0])
  expect(await one.text()).toContain('[DONE]')
  expect(await two.text()).toContain('[DONE]')
  await expect.poll(() => logged).toHaveLength(2)
  expect(new Set(logged.map(({ fields }) => fields?.['request_id']))).toEqual(new Set(ids))
  expect(logged[0]?.fields).toMatchObject({ status: 200, principal: 'alice', transport: 'completions', agent: 'one' })
})

test('the web handler: a stream that its reader leaves has its line as well', async () => {
  const { send, logged } = await (PLACES['the web handler'] as () => Promise<Placed>)()
  const answer = await send(new Request('http://x/v1/chat/completions', post({ model: 'one', messages: messages('Hello'), stream: true })))
  expect(logged).toEqual([])
  await answer.body?.cancel()
  expect(logged).toMatchObject([{ message: 'Request', fields: { status: 200, request_id: answer.headers.get('x-request-id') } }])
})

test('a server of ours: what does not get to a route tells the id, too', async () => {
  const { url } = await startServer(agent(), { ...options, limits: { headerCount: 20 } })
  const many = Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`x-${i}`, 'y']))
  const tooMany = await fetch(`${url}/v1/models`, { headers: { ...many, 'x-request-id': 'mine' } })
  expect([tooMany.status, tooMany.headers.get('x-request-id')]).toEqual([431, 'mine'])
  const preflight = { origin: url, 'access-control-request-method': 'POST', 'x-request-id': 'mine' }
  const asked = await fetch(`${url}/v1/models`, { method: 'OPTIONS', headers: preflight })
  expect([asked.status, asked.headers.get('x-request-id')]).toEqual([204, 'mine'])
})
