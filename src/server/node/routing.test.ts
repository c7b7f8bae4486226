import { request as httpRequest } from 'node:http'
import { expect, test } from 'vitest'
import { refusedUpgrade, testServer, transport } from '../../../test/support/test-server.ts'
import { defineAgent } from '../../core/agent-kit/define-agent.ts'
import type { AgentPort } from '../../core/ports/agent.ts'
import type { HttpRoute, Transport } from '../../core/ports/transport.ts'
import { UampError } from '../../protocol/errors.ts'

const agent = (name: string, transports?: readonly Transport[]): AgentPort => ({
  ...defineAgent(name, async function* () {}),
  ...(transports && { transports }),
})

/** Answers with what the server worked out. */
const echo = (path: string, method: HttpRoute['method'] = 'GET'): HttpRoute => ({
  method,
  path,
  access: 'request',
  handle: async (_, { agent, params, principal }) => Response.json({ agent: agent ?? null, params, principal: principal?.id }),
})

async function json(pending: Response | Promise<Response>): Promise<{ status: number; body: unknown }> {
  const response = await pending
  expect(response.headers.get('content-type')).toMatch(/^application\/json/)
  return { status: response.status, body: await response.json() }
}

test('the root belongs to the only agent, then to demo, unless it is said', async () => {
  const { url, agents } = await testServer({ routes: [echo('/who')], agents: [agent('solo')] })
  const who = async () => ((await json(fetch(`${url}/who`))).body as { agent: string | null }).agent
  expect(await who()).toBe('solo')
  agents.add(agent('other'))
  expect(await who()).toBeNull()
  agents.add(agent('demo'))
  expect(await who()).toBe('demo')

  const configured = await testServer({ routes: [echo('/who')], agents: [agent('demo'), agent('other')], defaultAgent: 'other' })
  expect((await json(fetch(`${configured.url}/who`))).body).toMatchObject({ agent: 'other' })
})

test('agents have their own paths, with dots in their names, and come and go', async () => {
  const { url, agents, connect } = await testServer({
    routes: [
      echo('/tasks/:id/artifacts/:name'),
      { method: 'WS', path: '/ws', access: 'request', handle: (socket, call) => socket.send([call.agent ?? '']) },
    ],
  })
  const path = '/agents/alice.my-bot.helper'
  const artifacts = `${url}${path}/tasks/t%2F1/artifacts/caf%C3%A9`
  const offline = { status: 404, body: { error: { code: 'agent_offline', message: expect.any(String), details: { retry_after: 30 } } } }
  expect(await json(fetch(artifacts))).toEqual(offline)
  expect(await refusedUpgrade(connect(`${path}/ws`))).toMatchObject(offline)

  agents.add(agent('alice.my-bot.helper'))
  expect((await json(fetch(artifacts))).body).toEqual({
    agent: 'alice.my-bot.helper',
    params: { id: 't/1', name: 'café' },
    principal: 'anonymous',
  })
  const message = await new Promise((resolve) => connect(`${path}/ws`).once('message', resolve))
  expect(String(message)).toBe('alice.my-bot.helper')

  agents.remove('alice.my-bot.helper')
  expect(await json(fetch(artifacts))).toEqual(offline)
})

test("an agent's own routes come before the built-in ones, are built once, and go with it", async () => {
  let built = 0
  const own: Transport = {
    name: 'own',
    routes: () => {
      built++
      return [{ method: 'GET', path: '/who', access: 'public', handle: async () => new Response('mine') }]
    },
  }
  const { url, agents } = await testServer({ routes: [echo('/who')], agents: [agent('plain'), agent('special', [own])] })
  const text = async (path: string) => (await fetch(url + path)).text()
  expect(await text('/agents/special/who')).toBe('mine')
  expect(await text('/agents/special/who')).toBe('mine')
  expect(await text('/agents/plain/who')).toContain('plain')
  expect(built).toBe(1)
  agents.add(agent('special'))
  expect(await text('/agents/special/who')).toContain('special')
})

test('routes that a user adds to the app win', async () => {
  const { url, app } = await testServer({ routes: [echo('/who')] })
  app.get('/who', (c) => c.text('the user'))
  app.get('/broken', () => {
    throw new Error('secret detail')
  })
  expect(await (await fetch(`${url}/who`)).text()).toBe('the user')
  expect(await json(fetch(`${url}/broken`))).toEqual({ status: 500, body: { error: { code: 'internal', message: 'Internal error' } } })
})

test('an unknown path, a wrong method, a socket asked for without an upgrade', async () => {
  const socket = { method: 'WS', path: '/ws', access: 'public', handle: async () => {} } as const
  const { url, connect } = await testServer({ routes: [echo('/both'), echo('/both', 'POST'), socket] })
  expect(await json(fetch(`${url}/nowhere`))).toMatchObject({ status: 404, body: { error: { code: 'not_found' } } })
  const wrong = await fetch(`${url}/both`, { method: 'DELETE' })
  expect(wrong.headers.get('allow')).toBe('GET, HEAD, POST, OPTIONS')
  expect(await json(wrong)).toMatchObject({ status: 405, body: { error: { code: 'invalid_request' } } })
  expect(await json(fetch(`${url}/ws`))).toMatchObject({ status: 426 })
  expect(await refusedUpgrade(connect('/both'))).toMatchObject({ status: 405 })
  expect(await refusedUpgrade(connect('/nowhere'))).toMatchObject({ status: 404, body: { error: { code: 'not_found' } } })

  const options = await fetch(`${url}/both`, { method: 'OPTIONS' })
  expect([options.status, options.headers.get('allow')]).toEqual([204, 'GET, HEAD, POST, OPTIONS'])
  const head = await fetch(`${url}/both`, { method: 'HEAD' })
  expect([head.status, await head.text()]).toEqual([200, ''])
})

test('what a handler throws becomes an error of its code, and nothing else is told', async () => {
  const thrower = (path: string, thrown: () => unknown): HttpRoute => ({
    method: 'GET',
    path,
    access: 'public',
    handle: async () => {
      throw thrown()
    },
  })
  const { url, logged } = await testServer({
    routes: [
      thrower('/known', () => new UampError('payment_required', 'Pay first', { details: { amount: '1' }, cause: 'hidden' })),
      thrower('/unknown', () => new Error('the password is hunter2')),
      thrower('/strange', () => 'a string'),
      thrower('/busy', () => new UampError('rate_limited', 'Later', { details: { retry_after: 1.5 } })),
    ],
  })
  expect(await json(fetch(`${url}/known`))).toEqual({
    status: 402,
    body: { error: { code: 'payment_required', message: 'Pay first', details: { amount: '1' } } },
  })
  expect(logged).toEqual([])
  for (const path of ['/unknown', '/strange']) {
    expect(await json(fetch(url + path))).toEqual({ status: 500, body: { error: { code: 'internal', message: 'Internal error' } } })
  }
  expect(logged.map(({ level, fields }) => [level, String(fields?.['error'])])).toEqual([
    ['error', 'Error: the password is hunter2'],
    ['error', 'a string'],
  ])
  expect((await fetch(`${url}/busy`)).headers.get('retry-after')).toBe('2')
})

test('says what is where, without credentials', async () => {
  const { url } = await testServer({
    routes: [echo('/who')],
    agents: [agent('one'), agent('two')],
    tokens: { alice: 's-0123456789abcdef' },
    anonymous: false,
  })
  expect((await json(fetch(`${url}/agents`))).body).toEqual({
    agents: [
      { name: 'one', path: '/agents/one' },
      { name: 'two', path: '/agents/two' },
    ],
  })
  expect((await json(fetch(url))).body).toMatchObject({ uamp: '1.0', routes: expect.arrayContaining(['GET /who (test)', 'GET /health']) })
  expect((await json(fetch(`${url}/health`))).body).toEqual({ status: 'ok' })
  expect((await fetch(`${url}/who`)).status).toBe(401)
})

test('whoever needs access waits until the server has started', async () => {
  let started!: () => void
  const { url } = await testServer({ routes: [echo('/who')], started: new Promise<void>((resolve) => (started = resolve)) })
  expect(await json(fetch(`${url}/ready`))).toMatchObject({ status: 503, body: { error: { code: 'overloaded' } } })
  const early = fetch(`${url}/who`)
  expect((await fetch(`${url}/health`)).status).toBe(200)
  started()
  expect((await early).status).toBe(200)
  expect((await fetch(`${url}/ready`)).status).toBe(200)
})

test('a Host that is none is refused as JSON', async () => {
  const { port } = await testServer()
  const response = await new Promise<{ status: number | undefined; text: string }>((resolve) => {
    httpRequest({ port, path: '/health', headers: { host: 'a b' } }, (incoming) => {
      let text = ''
      incoming.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
      incoming.on('end', () => resolve({ status: incoming.statusCode, text }))
    }).end()
  })
  expect(response.status).toBe(400)
  expect(JSON.parse(response.text)).toMatchObject({ error: { code: 'invalid_request' } })
})

test('a transport mounted twice keeps the order in which it was given', async () => {
  const first = transport('first', [{ method: 'GET', path: '/same', access: 'public', handle: async () => new Response('first') }])
  const second = transport('second', [{ method: 'GET', path: '/:any', access: 'public', handle: async () => new Response('second') }])
  const { url } = await testServer({ agents: [agent('a', [first, second])] })
  expect(await (await fetch(`${url}/same`)).text()).toBe('first')
  expect(await (await fetch(`${url}/health`)).text()).toBe('second')
})
