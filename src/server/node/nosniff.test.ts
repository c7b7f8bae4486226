import { connect as dial } from 'node:net'
import { expect, test } from 'vitest'
import { demo } from '../../agents/demo/index.ts'
import { startServer } from '../../../test/support/server.ts'

/** What a bare connection is answered, head and all. */
function raw(url: string, text: string): Promise<string> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve, reject) => {
    let heard = ''
    const socket = dial(Number(port), hostname, () => socket.write(text))
    socket.setEncoding('utf8').on('data', (piece: string) => {
      heard += piece
      if (heard.includes('\r\n\r\n')) socket.destroy()
    })
    socket.on('close', () => resolve(heard.toLowerCase())).on('error', reject)
  })
}

const MESSAGES = [{ role: 'user', content: 'Hello' }]
const json = (body: object) => ({ method: 'POST', body: JSON.stringify(body) })

test('every answer has an id of its own, and nobody is to guess what it is: good ones, refusals, streams, and what is no HTTP', async () => {
  const { url } = await startServer(demo(), { origins: ['https://app.example'] })
  const origin = { origin: 'https://app.example' }
  const requests: [string, RequestInit][] = [
    ['/', {}],
    ['/health', {}],
    ['/ready', {}],
    ['/metrics', {}],
    ['/agents', {}],
    ['/.well-known/agent-card.json', {}],
    ['/.well-known/agent-card.json', { headers: { 'if-none-match': '*' } }],
    ['/nowhere', {}],
    ['/health', { method: 'DELETE' }],
    ['/events', { method: 'OPTIONS' }],
    ['/events', { method: 'OPTIONS', headers: { ...origin, 'access-control-request-method': 'POST' } }],
    ['/events', { headers: { origin: 'https://evil.example' }, method: 'POST', body: '{' }],
    ['/events', { method: 'POST', body: '{' }],
    ['/events', json({ type: 'session.create' })],
    ['/v1/models', { headers: origin }],
    ['/v1/chat/completions', json({ model: 'demo', messages: MESSAGES })],
    ['/v1/chat/completions', json({ model: 'demo', messages: MESSAGES, stream: true })],
    ['/v1/chat/completions', json({})],
    ['/v1/responses', json({ model: 'demo', input: 'Hello', stream: true })],
    ['/v1/responses/none', {}],
    ['/a2a/rest/tasks', { headers: { 'a2a-version': '1.0' } }],
    ['/tasks', json({ message: { role: 'user', parts: [{ text: 'Hello' }] } })],
    ['/ag-ui', json({ threadId: 't', runId: 'r', messages: [{ id: 'm', role: 'user', content: 'Hello' }] })],
    ['/acp', json({ jsonrpc: '2.0', id: 1, method: 'tools/list' })],
    ['/media/download/none/none', {}],
    [`/${'x'.repeat(9_000)}`, {}],
    ['/uamp', {}],
  ]
  const ids = new Set<string>()
  for (const [path, init] of requests) {
    const response = await fetch(url + path, init)
    await response.body?.cancel()
    const name = `${init.method ?? 'GET'} ${path.slice(0, 40)} ${response.status}`
    expect(response.headers.get('x-content-type-options'), name).toBe('nosniff')
    const id = response.headers.get('x-request-id') ?? ''
    expect(id, name).toMatch(/^req_[\w-]+$/)
    expect(ids, name).not.toContain(id)
    ids.add(id)
  }
  const head = `GET /uamp HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\n`
  const many = Array.from({ length: 120 }, (_, index) => `x-${index}: 1\r\n`).join('')
  for (const text of [
    'this is not HTTP\r\n\r\n',
    `GET / HTTP/1.1\r\nhost: localhost\r\nx: ${'x'.repeat(20_000)}\r\n\r\n`,
    `GET / HTTP/1.1\r\nhost: localhost\r\n${many}\r\n`,
    `${head}sec-websocket-version: 13\r\n\r\n`,
    `${head}sec-websocket-version: 3\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n`,
    head.replace('/uamp', '/nowhere') + 'sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n',
  ]) {
    const answer = await raw(url, text)
    expect(answer, JSON.stringify(text.slice(0, 120))).toMatch(/^http\/1\.1 [45]\d\d/)
    expect(answer, JSON.stringify(text.slice(0, 120))).toContain('x-content-type-options: nosniff')
    expect(answer, JSON.stringify(text.slice(0, 120))).toMatch(/\r\nx-request-id: req_[\w-]+\r\n/)
  }
})
