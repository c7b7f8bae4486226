import { expect } from 'vitest'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'
import { demo } from './agents.ts'

const JSON_TYPE = { 'content-type': 'application/json' }
const INITIALIZE = { jsonrpc: '2.0', id: 1, method: 'initialize', params: { protocolVersion: 1 } }

async function connected(options: Parameters<typeof startServer>[1] = {}, headers: Record<string, string> = {}) {
  const { url } = await startServer(demo(), options)
  const call = (method: string, { body, headers: more = {} }: { body?: unknown; headers?: Record<string, string> } = {}) =>
    fetch(`${url}/acp`, {
      method,
      headers: { ...JSON_TYPE, ...headers, ...more },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
  const response = await call('POST', { body: INITIALIZE })
  const connection = { 'acp-connection-id': response.headers.get('acp-connection-id') ?? '' }
  return { url, call, response, connection }
}

verifies(['acp-1.http', 'acp-1.http-errors'], 'a connection, and what is refused about it', async () => {
  const { call, response, connection } = await connected()
  expect(response.status).toBe(200)
  expect(await response.json()).toMatchObject({ id: 1, result: { protocolVersion: 1 } })
  expect(connection['acp-connection-id']).not.toBe('')
  const list = { jsonrpc: '2.0', id: 2, method: 'session/list', params: {} }
  const prompt = { jsonrpc: '2.0', id: 3, method: 'session/prompt', params: { sessionId: 's', prompt: [] } }
  const stream = { accept: 'text/event-stream' }
  const refused: readonly (readonly [number, string, { body?: unknown; headers?: Record<string, string> }])[] = [
    [415, 'POST', { body: list, headers: { ...connection, 'content-type': 'text/plain' } }],
    [400, 'POST', { body: '{', headers: connection }],
    [400, 'POST', { body: [list], headers: connection }],
    [400, 'POST', { body: list }],
    [404, 'POST', { body: list, headers: { 'acp-connection-id': 'nobody' } }],
    [400, 'POST', { body: INITIALIZE, headers: connection }],
    [400, 'POST', { body: prompt, headers: connection }],
    [400, 'POST', { body: prompt, headers: { ...connection, 'acp-session-id': 'other' } }],
    [406, 'GET', { headers: connection }],
    [400, 'GET', { headers: stream }],
    [404, 'GET', { headers: { ...stream, 'acp-connection-id': 'nobody' } }],
    [400, 'DELETE', {}],
    [404, 'DELETE', { headers: { 'acp-connection-id': 'nobody' } }],
    [405, 'PUT', { body: list }],
  ]
  for (const [status, method, how] of refused) {
    const answer = await call(method, how)
    expect([method, how, answer.status]).toEqual([method, how, status])
    expect(await answer.json()).toMatchObject({ jsonrpc: '2.0', id: null, error: { code: expect.any(Number) as number } })
  }
  expect((await call('POST', { body: list, headers: connection })).status).toBe(202)
  const reading = await call('GET', { headers: { ...connection, ...stream } })
  expect(reading.status).toBe(200)
  expect((await call('GET', { headers: { ...connection, ...stream } })).status).toBe(409)
  const reader = reading.body?.pipeThrough(new TextDecoderStream()).getReader()
  let heard = ''
  while (!heard.includes('"id":2')) heard += (await reader?.read())?.value ?? ''
  expect(heard).toContain('data: {"jsonrpc":"2.0","id":2,"result":{"sessions":[]}}\n\n')
  expect((await call('DELETE', { headers: connection })).status).toBe(202)
  for (;;) if ((await reader?.read())?.done ?? true) break
  expect((await call('POST', { body: list, headers: connection })).status).toBe(404)
})

verifies('acp-1.http', 'a stream that was left can be read again', async () => {
  const { call, connection } = await connected()
  const first = await call('GET', { headers: { ...connection, accept: 'text/event-stream' } })
  await first.body?.cancel()
  // The server learns of it when it does.
  for (;;) {
    const again = await call('GET', { headers: { ...connection, accept: 'text/event-stream' } })
    if (again.status === 200) {
      await again.body?.cancel()
      break
    }
    expect(again.status).toBe(409)
  }
})

verifies(['acp-1.owner', 'acp-1.http-errors'], "nobody is let in without a token, nor into another's connection", async () => {
  const { call, response, connection, url } = await connected(
    { tokens: { alice: 'a-0123456789abcdef', bob: 'b-0123456789abcdef' } },
    { authorization: 'Bearer a-0123456789abcdef' },
  )
  expect(response.status).toBe(200)
  const stranger = await fetch(`${url}/acp`, { method: 'POST', headers: JSON_TYPE, body: JSON.stringify(INITIALIZE) })
  expect(stranger.status).toBe(401)
  expect(await stranger.json()).toMatchObject({ jsonrpc: '2.0', id: null, error: { code: -32000 } })
  for (const method of ['POST', 'GET', 'DELETE']) {
    const headers = { ...connection, authorization: 'Bearer b-0123456789abcdef', accept: 'text/event-stream' }
    const body = method === 'POST' ? { body: { jsonrpc: '2.0', id: 1, method: 'session/list' } } : {}
    expect((await call(method, { ...body, headers })).status).toBe(404)
  }
})
