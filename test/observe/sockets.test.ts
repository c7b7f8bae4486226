import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { WebSocket } from 'ws'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { startServer } from '../support/server.ts'

const failing = () =>
  defineAgent('failing', async function* () {
    throw new Error('a secret place in the code')
  })

interface Asked {
  readonly path: string
  readonly sent: readonly object[]
}

/** How an agent is asked over each protocol that has a WebSocket. */
const ASK: Readonly<Record<string, Asked>> = {
  events: {
    path: '/uamp',
    sent: [{ type: 'session.create', uamp_version: '1.0' }, { type: 'input.text', text: 'Hello' }, { type: 'response.create' }],
  },
  realtime: {
    path: '/v1/realtime?model=failing',
    sent: [
      { type: 'session.update', session: { type: 'realtime', output_modalities: ['text'] } },
      { type: 'conversation.item.create', item: { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Hello' }] } },
      { type: 'response.create' },
    ],
  },
  responses: { path: '/v1/responses', sent: [{ type: 'response.create', model: 'failing', input: 'Hello' }] },
  acp: {
    path: '/acp',
    sent: [{ jsonrpc: '2.0', id: 1, method: 'prompt/submit', params: { messages: [{ role: 'user', content: 'Hello' }] } }],
  },
  omnia: { path: '/omnia?agent=failing', sent: [{ type: 'message', content: 'Hello' }] },
}

const TRACE = '0af7651916cd43dd8448eb211c80319c'
const headers = { 'x-request-id': 'mine', traceparent: `00-${TRACE}-b7ad6b7169203331-01` }

test.each(Object.entries(ASK))('%s: the connection and the failure on it have one id, by which the log line is found', async (_, asked) => {
  const { url, logged } = await startServer(failing(), { accessLog: true })
  const socket = new WebSocket(url.replace('http', 'ws') + asked.path, { headers })
  onTestFinished(() => socket.terminate())
  const heard: string[] = []
  socket.on('message', (data: Buffer) => heard.push(data.toString()))
  const [upgrade] = (await once(socket, 'upgrade')) as [IncomingMessage]
  expect(upgrade.headers['x-request-id']).toBe('mine')
  if (socket.readyState !== WebSocket.OPEN) await once(socket, 'open')
  for (const [index, event] of asked.sent.entries()) socket.send(JSON.stringify({ event_id: `e${index}`, ...event }))
  await expect.poll(() => heard.find((text) => text.includes('"request_id":"mine"'))).toBeDefined()
  expect(heard.join()).not.toContain('a secret place')
  const failed = logged.find(({ message }) => message === 'The agent failed')
  expect(failed?.fields).toMatchObject({ request_id: 'mine', trace_id: TRACE })
  socket.close()
  await expect.poll(() => logged.at(-1)).toMatchObject({ message: 'Request', fields: { status: 101, request_id: 'mine', trace_id: TRACE } })
  // Whatever was logged was logged for this connection.
  for (const { fields } of logged) expect(fields).toMatchObject({ request_id: 'mine', trace_id: TRACE })
})

test.each(Object.entries(ASK))('%s: an upgrade that is refused tells the id of the request', async (_, { path }) => {
  const { url, logged } = await startServer(failing(), { tokens: { alice: 'wonderland-7b1f9c04' }, accessLog: true })
  const socket = new WebSocket(url.replace('http', 'ws') + path, { headers: { ...headers, authorization: 'Bearer wrong' } })
  socket.on('error', () => undefined)
  const [, answer] = (await once(socket, 'unexpected-response')) as [unknown, IncomingMessage]
  expect([answer.statusCode, answer.headers['x-request-id']]).toEqual([401, 'mine'])
  expect(logged.at(-1)).toMatchObject({ message: 'Request', fields: { status: 401, request_id: 'mine', trace_id: TRACE } })
})

test('a handshake that fails at last has its id and its line', async () => {
  const { url, port, logged } = await startServer(failing(), { accessLog: true })
  const socket = connect(port, '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  const asked = ['GET /uamp HTTP/1.1', `host: ${new URL(url).host}`, 'connection: upgrade', 'upgrade: websocket', 'x-request-id: mine']
  socket.write([...asked, 'sec-websocket-version: 13', 'sec-websocket-key: no key', '', ''].join('\r\n'))
  const [answer] = (await once(socket, 'data')) as [Buffer]
  expect(answer.toString()).toMatch(/^HTTP\/1\.1 400 [^]*\r\nx-request-id: mine\r\n/)
  expect(logged).toMatchObject([{ message: 'Request', fields: { method: 'WS', path: '/uamp', status: 400, request_id: 'mine' } }])
})
