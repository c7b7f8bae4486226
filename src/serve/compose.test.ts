import { once } from 'node:events'
import { mkdtemp, rm, stat } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { serve as serveHono } from '@hono/node-server'
import { expect, onTestFinished, test } from 'vitest'
import { WebSocket } from 'ws'
import { defineAgent } from '../core/agent-kit/define-agent.ts'
import type { Transport } from '../core/ports/transport.ts'
import { createAgentApp, serve } from './index.ts'
import type { ServeOptions } from './index.ts'

const quiet = () => {}
const parrot = (name = 'parrot') =>
  defineAgent(name, async function* ({ messages }) {
    yield { type: 'response.delta', delta: { type: 'text', text: `${name} heard ${JSON.stringify(messages.at(-1)?.content)}` } }
  })

/** Streams until it is stopped, and tells when that was. */
function endless() {
  let ended!: () => void
  const end = new Promise<void>((resolve) => (ended = resolve))
  const agent = defineAgent('endless', async function* () {
    try {
      for (let i = 0; ; i++) {
        yield { type: 'response.delta', delta: { type: 'text', text: `${i} ` } }
        await new Promise((resolve) => setTimeout(resolve, 1))
      }
    } finally {
      ended()
    }
  })
  return { agent, end }
}

async function running(agents: Parameters<typeof serve>[0], options: ServeOptions = {}) {
  const server = await serve(agents, { port: 0, data: 'memory', log: quiet, ...options })
  onTestFinished(() => server.close({ graceMs: 0 }))
  return server
}

/** Opens a session over WebSocket, says something, and gives the events that come. */
async function talk(url: string, text: string, { until = 'response.done', protocols = [] as string[] } = {}) {
  const client = new WebSocket(url.replace('http', 'ws'), protocols)
  const events: { type: string; delta?: { text?: string } }[] = []
  const done = new Promise<void>((resolve, reject) => {
    client.on('error', reject)
    client.on('close', () => resolve())
    client.on('message', (data) => {
      const event = JSON.parse(String(data)) as { type: string; session_id: string }
      events.push(event)
      if (event.type === 'session.created') {
        const { session_id } = event
        client.send(JSON.stringify({ type: 'input.text', event_id: 'e2', session_id, text }))
        client.send(JSON.stringify({ type: 'response.create', event_id: 'e3', session_id }))
      }
      if (event.type === until) resolve()
    })
  })
  client.once('open', () => {
    client.send(JSON.stringify({ type: 'session.create', event_id: 'e1', uamp_version: '1.0', session: { modalities: ['text'] } }))
  })
  await done
  return { client, events, text: events.map((event) => event.delta?.text ?? '').join('') }
}

test('serves one agent at the root and several under their names, over WebSocket', async () => {
  const { url, agents } = await running([parrot('one'), parrot('two')], { defaultAgent: 'two' })
  expect((await talk(`${url}/uamp`, 'hi')).text).toBe('two heard "hi"')
  expect((await talk(`${url}/agents/one/uamp`, 'hi')).text).toBe('one heard "hi"')
  agents.add(parrot('my.third'))
  expect((await talk(`${url}/agents/my.third/ws`, 'hi')).text).toBe('my.third heard "hi"')
  agents.remove('one')
  await expect(talk(`${url}/agents/one/uamp`, 'hi')).rejects.toThrow('404')
})

test('keeps its sessions in one file of the data folder', async () => {
  const data = await mkdtemp(join(tmpdir(), 'uamp-'))
  onTestFinished(() => rm(data, { recursive: true }))
  const server = await running(parrot(), { data })
  expect((await talk(`${server.url}/uamp`, 'hi')).text).toBe('parrot heard "hi"')
  expect((await stat(join(data, 'uamp.db'))).isFile()).toBe(true)
})

test('mounts the transports of a user before its own', async () => {
  const hello: Transport = {
    name: 'hello',
    routes: ({ agents }) => [
      { method: 'GET', path: '/schemas/events.json', access: 'public', handle: async () => Response.json(agents.names()) },
    ],
  }
  const { url } = await running(parrot(), { transports: [hello] })
  expect(await (await fetch(`${url}/schemas/events.json`)).json()).toEqual(['parrot'])
})

test('an address that others can reach needs a token, or leave to go without', async () => {
  const refused = serve(parrot(), { port: 0, host: '0.0.0.0', data: 'memory', log: quiet })
  await expect(refused).rejects.toMatchObject({ code: 'invalid_request', message: expect.stringContaining('give a token') })
  const withToken = await running(parrot(), { host: '0.0.0.0', tokens: { alice: 'wonderland-0123456789abcdef' } })
  expect((await fetch(`${withToken.url}/events`, { method: 'POST', body: '{}' })).status).toBe(401)
  const protocols = ['uamp', `uamp.token.${Buffer.from('wonderland-0123456789abcdef').toString('base64url')}`]
  expect((await talk(`${withToken.url}/uamp`, 'hi', { protocols })).text).toBe('parrot heard "hi"')
  const open = await running(parrot(), { host: '0.0.0.0', allowAnonymous: true })
  expect((await talk(`${open.url}/uamp`, 'hi')).text).toBe('parrot heard "hi"')
})

test('says what to do when it cannot listen', async () => {
  const { port } = await running(parrot())
  const attempt = (options: ServeOptions) => serve(parrot(), { data: 'memory', log: quiet, ...options })
  await expect(attempt({ port })).rejects.toMatchObject({ code: 'conflict', message: expect.stringContaining(`Port ${port} is in use`) })
  await expect(attempt({ port: 70_000 })).rejects.toMatchObject({ message: expect.stringContaining('is not a port') })
  const nowhere = { port: 0, host: '203.0.113.7', tokens: { alice: 'a-0123456789abcdef' } }
  await expect(attempt(nowhere)).rejects.toMatchObject({ message: expect.stringContaining('no address "203.0.113.7"') })
})

test('drains: no new work, running responses get their time, then sockets close with 1001', async () => {
  const { agent, end } = endless()
  const server = await running(agent)
  const { client, events } = await talk(`${server.url}/uamp`, 'go', { until: 'response.delta' })
  expect((await fetch(`${server.url}/ready`)).status).toBe(200)
  const [[code]] = await Promise.all([once(client, 'close'), server.close({ graceMs: 50 })])
  await end
  expect(code).toBe(1001)
  expect(events.at(-1)).toMatchObject({ type: 'response.error', error: { code: 'interrupted' } })
  await expect(fetch(`${server.url}/health`)).rejects.toThrow()
})

test('while it drains, new connections are refused, and so is new work on open ones', async () => {
  const { agent, end } = endless()
  const server = await running(agent)
  const { client, events } = await talk(`${server.url}/uamp`, 'go', { until: 'response.delta' })
  const other = new WebSocket(`${server.url.replace('http', 'ws')}/uamp`)
  await once(other, 'open')
  const closed = server.close({ graceMs: 30_000 })
  await expect
    .poll(() =>
      fetch(`${server.url}/ready`).then(
        ({ status }) => status,
        () => 'refused',
      ),
    )
    .toBe('refused')
  const answer = once(other, 'message')
  other.send(JSON.stringify({ type: 'session.create', event_id: 'e1', uamp_version: '1.0', session: { modalities: ['text'] } }))
  expect(String((await answer)[0])).toContain('"overloaded"')
  client.send(JSON.stringify({ type: 'response.cancel', event_id: 'e2' }))
  await end
  await closed
  expect(events.at(-1)?.type).toBe('response.cancelled')
})

test('a response that ends within the grace time is delivered whole', async () => {
  let finish!: () => void
  const finished = new Promise<void>((resolve) => (finish = resolve))
  const slow = defineAgent('slow', async function* () {
    yield { type: 'response.delta', delta: { type: 'text', text: 'begun, ' } }
    await finished
    yield { type: 'response.delta', delta: { type: 'text', text: 'finished' } }
  })
  const server = await running(slow)
  const { client, events } = await talk(`${server.url}/uamp`, 'go', { until: 'response.delta' })
  const closed = Promise.all([once(client, 'close'), server.close({ graceMs: 10_000 })])
  finish()
  await closed
  expect(events.at(-1)?.type).toBe('response.done')
})

test('ends streams and idle connections when it closes, and closes once', async () => {
  const server = await running(parrot())
  const created = await fetch(`${server.url}/events`, {
    method: 'POST',
    body: JSON.stringify({ type: 'session.create', event_id: 'e1', uamp_version: '1.0', session: { modalities: ['text'] } }),
  })
  const session = created.headers.get('x-session-id') ?? ''
  const stream = await fetch(`${server.url}/events/stream`, { headers: { 'x-session-id': session } })
  const text = stream.text()
  await Promise.all([server.close({ graceMs: 1000 }), server.close()])
  expect(await text).toContain('session.created')
})

test('a server of your own: mount the app, hand over the upgrades', async () => {
  const { app, handleUpgrade, close } = createAgentApp(parrot(), { data: 'memory', log: quiet })
  app.get('/mine', (c) => c.text('hello'))
  const server = serveHono({ fetch: app.fetch, port: 0, hostname: '127.0.0.1', createServer })
  server.on('upgrade', handleUpgrade)
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  expect(await (await fetch(`${url}/mine`)).text()).toBe('hello')
  const { client, text } = await talk(`${url}/uamp`, 'hi')
  expect(text).toBe('parrot heard "hi"')
  const [[code]] = await Promise.all([once(client, 'close'), close({ graceMs: 0 })])
  expect(code).toBe(1001)
  expect((await fetch(`${url}/ready`)).status).toBe(503)
})
