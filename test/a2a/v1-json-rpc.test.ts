import { describe, expect, test } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'
import { ERROR_INFO, user, type Wire } from './v1-wire.ts'

type Sent = { readonly body: unknown; readonly headers?: Record<string, string>; readonly query?: string; readonly path?: string }

async function post(
  url: string,
  { body, headers, query = '', path = '/a2a' }: Sent,
): Promise<{ status: number; body: Wire; headers: Headers }> {
  const response = await fetch(url + path + query, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
  const text = await response.text()
  return { status: response.status, headers: response.headers, body: text === '' ? undefined : (JSON.parse(text) as Wire) }
}

const request = (more: object = {}) => ({ jsonrpc: '2.0', id: 1, method: 'ListTasks', params: {}, ...more })
const info = (reason: string) => expect.objectContaining({ '@type': ERROR_INFO, reason, domain: 'a2a-protocol.org' }) as object

interface Row extends Sent {
  readonly verifies: Parameters<typeof verifies>[0]
  readonly name: string
  readonly id?: unknown
  readonly code: number
  readonly reason: string
}

const refused: readonly Row[] = [
  { verifies: 'a2a-1.0.rpc-request', name: 'no JSON', body: '{"jsonrpc":', id: null, code: -32700, reason: 'PARSE_ERROR' },
  { verifies: 'a2a-1.0.rpc-request', name: 'nothing', body: '', id: null, code: -32700, reason: 'PARSE_ERROR' },
  { verifies: 'a2a-1.0.rpc-request', name: 'a batch', body: [request()], id: null, code: -32600, reason: 'INVALID_REQUEST' },
  { verifies: 'a2a-1.0.rpc-request', name: 'an empty batch', body: [], id: null, code: -32600, reason: 'INVALID_REQUEST' },
  { verifies: 'a2a-1.0.rpc-request', name: 'a number', body: '7', id: null, code: -32600, reason: 'INVALID_REQUEST' },
  { verifies: 'a2a-1.0.rpc-request', name: 'JSON-RPC 1.0', body: request({ jsonrpc: '1.0' }), code: -32600, reason: 'INVALID_REQUEST' },
  { verifies: 'a2a-1.0.rpc-request', name: 'no method', body: request({ method: undefined }), code: -32600, reason: 'INVALID_REQUEST' },
  {
    verifies: 'a2a-1.0.rpc-request',
    name: 'an id that is an object',
    body: request({ id: {} }),
    id: null,
    code: -32600,
    reason: 'INVALID_REQUEST',
  },
  {
    verifies: 'a2a-1.0.rpc-request',
    name: 'an endless id',
    body: request({ id: 'x'.repeat(300) }),
    id: null,
    code: -32600,
    reason: 'INVALID_REQUEST',
  },
  { verifies: 'a2a-1.0.rpc-request', name: '100 levels', body: '['.repeat(100), id: null, code: -32600, reason: 'INVALID_REQUEST' },
  {
    verifies: 'a2a-1.0.rpc-request',
    name: 'an unknown method',
    body: request({ method: 'DoIt' }),
    code: -32601,
    reason: 'METHOD_NOT_FOUND',
  },
  {
    verifies: 'a2a-1.0.rpc-request',
    name: 'a method of all objects',
    body: request({ method: 'toString' }),
    code: -32601,
    reason: 'METHOD_NOT_FOUND',
  },
  {
    verifies: 'a2a-1.0.rpc-request',
    name: 'params that are a text',
    body: request({ params: 'all' }),
    code: -32602,
    reason: 'INVALID_PARAMS',
  },
  {
    verifies: 'a2a-1.0.rpc-request',
    name: 'params that are an array',
    body: request({ params: [] }),
    code: -32602,
    reason: 'INVALID_PARAMS',
  },
  {
    verifies: ['a2a-1.0.rpc-error', 'a2a-1.0.not-found'],
    name: 'no such task',
    body: request({ method: 'GetTask', params: { id: 'x' }, id: 'abc' }),
    id: 'abc',
    code: -32001,
    reason: 'TASK_NOT_FOUND',
  },
  {
    verifies: 'a2a-1.0.rpc-content-type',
    name: 'text/plain',
    body: request(),
    headers: { 'content-type': 'text/plain' },
    id: null,
    code: -32005,
    reason: 'CONTENT_TYPE_NOT_SUPPORTED',
  },
  {
    verifies: 'a2a-1.0.version-unsupported',
    name: 'version 99.0',
    body: request(),
    headers: { 'a2a-version': '99.0' },
    code: -32009,
    reason: 'VERSION_NOT_SUPPORTED',
  },
  {
    verifies: ['a2a-1.0.version-unsupported', 'a2a-1.0.version-query'],
    name: 'version 2.0 in the query',
    body: request(),
    query: '?A2A-Version=2.0',
    code: -32009,
    reason: 'VERSION_NOT_SUPPORTED',
  },
  {
    verifies: 'a2a-1.0.version-unsupported',
    name: 'a version that is none',
    body: request(),
    headers: { 'a2a-version': 'latest' },
    code: -32009,
    reason: 'VERSION_NOT_SUPPORTED',
  },
  {
    verifies: 'a2a-1.0.version-empty',
    name: 'ListTasks in 0.3, which an empty version is',
    body: request(),
    headers: { 'a2a-version': '' },
    code: -32601,
    reason: 'METHOD_NOT_FOUND',
  },
]

describe('what JSON-RPC refuses', () => {
  for (const { verifies: ids, name, id = 1, code, reason, ...sent } of refused) {
    verifies(ids, name, async () => {
      const { url } = await startServer(demo())
      const answer = await post(url, sent)
      expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'application/json'])
      expect(answer.body).toEqual({
        jsonrpc: '2.0',
        id,
        error: { code, message: expect.stringMatching(/^[^\n]{5,200}$/), data: expect.arrayContaining([info(reason)]) },
      })
    })
  }
})

describe('what JSON-RPC takes', () => {
  const taken: readonly (Sent & { readonly name: string; readonly verifies: Row['verifies'] })[] = [
    { verifies: 'a2a-1.0.version-query', name: 'version 1.0 in the query', body: request(), query: '?a2a-version=1.0' },
    { verifies: 'a2a-1.0.version-patch', name: 'version 1.0.1', body: request(), headers: { 'a2a-version': '1.0.1' } },
    { verifies: [], name: 'no version', body: request() },
    { verifies: [], name: 'a slash at the end of the path', body: request(), path: '/a2a/' },
    { verifies: [], name: 'the path of the agent', body: request(), path: '/agents/demo/a2a' },
    { verifies: [], name: 'no params', body: request({ params: undefined }) },
    { verifies: [], name: 'a type with a charset', body: request(), headers: { 'content-type': 'application/json; charset=utf-8' } },
  ]
  for (const { verifies: ids, name, ...sent } of taken) {
    verifies(ids, name, async () => {
      const { url } = await startServer(demo())
      expect((await post(url, sent)).body).toMatchObject({ jsonrpc: '2.0', id: 1, result: { tasks: [], totalSize: 0 } })
    })
  }

  test('a notification is done and gets no answer', async () => {
    const { url } = await startServer(demo())
    for (const method of ['SendMessage', 'SendStreamingMessage']) {
      const body = { jsonrpc: '2.0', method, params: { message: user('quietly') } }
      expect(await post(url, { body })).toMatchObject({ status: 202, body: undefined })
    }
    expect(await post(url, { body: { jsonrpc: '2.0', method: 'SendMessage', params: {} } })).toMatchObject({ status: 202, body: undefined })
    expect((await post(url, { body: request() })).body.result.totalSize).toBe(2)
  })

  test('the stream as it is written: ids, one line of data, no names', async () => {
    const { url } = await startServer(demo())
    const response = await fetch(`${url}/a2a`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'a2a-version': '1.0' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 'a"b', method: 'SendStreamingMessage', params: { message: user('a\n"b" \u2028') } }),
    })
    expect(response.headers.get('content-type')).toMatch(/^text\/event-stream/)
    const frames = (await response.text()).split('\n\n').slice(0, -1)
    for (const frame of frames) expect(frame).toMatch(/^(id: [^\n]+\n)?data: \{"jsonrpc":"2\.0","id":"a\\"b","result":\{[^\n]*\}\}$/)
    const results = frames.map((frame) => JSON.parse(frame.slice(frame.indexOf('data: ') + 6)).result as Wire)
    const said = results.flatMap(({ artifactUpdate }) => artifactUpdate?.artifact.parts[0].text ?? '').join('')
    expect(said).toBe('You said: a\n"b" \u2028')
  })
})

verifies('a2a-1.0.rpc-error', 'a wrong field is a BadRequest beside the ErrorInfo (§9.5)', async () => {
  const { url } = await startServer(demo())
  const { body } = await post(url, { body: request({ method: 'SendMessage', params: { message: user('', { parts: [] }) } }) })
  expect(body).toEqual({
    jsonrpc: '2.0',
    id: 1,
    error: {
      code: -32602,
      message: '"message.parts" must have at least one part',
      data: [
        { '@type': ERROR_INFO, reason: 'INVALID_PARAMS', domain: 'a2a-protocol.org' },
        {
          '@type': 'type.googleapis.com/google.rpc.BadRequest',
          fieldViolations: [{ field: 'message.parts', description: '"message.parts" must have at least one part' }],
        },
      ],
    },
  })
})

test('what the server refuses is JSON-RPC too', async () => {
  const { url } = await startServer(demo(), { tokens: { ann: 'secret-of-ann-0123456789abcdef' } })
  const { status, headers, body } = await post(url, { body: request() })
  expect([status, headers.get('www-authenticate')]).toEqual([401, 'Bearer realm="uamp"'])
  expect(body).toEqual({ jsonrpc: '2.0', id: null, error: { code: -32603, message: expect.any(String), data: [info('UNAUTHENTICATED')] } })
  const wrong = await fetch(`${url}/a2a`)
  expect([wrong.status, wrong.headers.get('allow')]).toEqual([405, 'POST, OPTIONS'])
  expect(await wrong.json()).toMatchObject({ jsonrpc: '2.0', id: null, error: { code: expect.any(Number) } })
})

verifies('a2a-1.0.tenant', 'at the root a tenant is an agent, elsewhere there is none', async () => {
  const { url } = await startServer([demo(), { ...demo(), name: 'other' }])
  const send = (tenant: string, path?: string) =>
    post(url, { body: request({ method: 'SendMessage', params: { tenant, message: user('hi') } }), ...(path !== undefined && { path }) })
  const { id } = (await send('other')).body.result.task
  const get = (path: string) => post(url, { body: request({ method: 'GetTask', params: { id } }), path })
  expect((await get('/agents/other/a2a')).body.result).toMatchObject({ id })
  expect((await send('other', '/agents/demo/a2a')).body.error).toMatchObject({ code: -32602 })
  expect((await send('other', '/agents/other/a2a')).body.result.task.status.state).toBe('TASK_STATE_COMPLETED')
})
