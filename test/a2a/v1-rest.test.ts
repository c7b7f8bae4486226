import { describe, expect, test } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'
import { gate, halfway } from './v1-agents.ts'
import { ERROR_INFO, user, type Wire } from './v1-wire.ts'

type Sent = { readonly method?: string; readonly path: string; readonly headers?: Record<string, string>; readonly body?: unknown }

async function send(url: string, { method = 'GET', path, headers, body }: Sent): Promise<{ status: number; headers: Headers; body: Wire }> {
  const response = await fetch(`${url}/a2a/rest${path}`, {
    method,
    headers: { ...(body !== undefined && { 'content-type': 'application/a2a+json' }), ...headers },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  const text = await response.text()
  return { status: response.status, headers: response.headers, body: text === '' ? undefined : (JSON.parse(text) as Wire) }
}

interface Row extends Sent {
  readonly verifies: Parameters<typeof verifies>[0]
  readonly name: string
  readonly status: number
  readonly rpc: string
  readonly reason: string
}

const message = () => ({ message: user('hi') })

const refused: readonly Row[] = [
  {
    verifies: 'a2a-1.0.rest-error',
    name: 'no such task (§11.6)',
    path: '/tasks/nowhere',
    status: 404,
    rpc: 'NOT_FOUND',
    reason: 'TASK_NOT_FOUND',
  },
  {
    verifies: 'a2a-1.0.rest-error',
    name: 'a body that is not JSON',
    method: 'POST',
    path: '/message:send',
    body: '{',
    status: 400,
    rpc: 'INVALID_ARGUMENT',
    reason: 'PARSE_ERROR',
  },
  {
    verifies: 'a2a-1.0.rest-error',
    name: 'a body that is an array',
    method: 'POST',
    path: '/message:send',
    body: [],
    status: 400,
    rpc: 'INVALID_ARGUMENT',
    reason: 'INVALID_PARAMS',
  },
  {
    verifies: 'a2a-1.0.rest-error',
    name: 'a message without parts',
    method: 'POST',
    path: '/message:stream',
    body: { message: user('', { parts: [] }) },
    status: 400,
    rpc: 'INVALID_ARGUMENT',
    reason: 'INVALID_PARAMS',
  },
  {
    verifies: 'a2a-1.0.rest-error',
    name: 'text/plain (§5.4: 400)',
    method: 'POST',
    path: '/message:send',
    headers: { 'content-type': 'text/plain' },
    body: message(),
    status: 400,
    rpc: 'INVALID_ARGUMENT',
    reason: 'CONTENT_TYPE_NOT_SUPPORTED',
  },
  {
    verifies: 'a2a-1.0.version-unsupported',
    name: 'version 99.0',
    path: '/tasks',
    headers: { 'a2a-version': '99.0' },
    status: 400,
    rpc: 'FAILED_PRECONDITION',
    reason: 'VERSION_NOT_SUPPORTED',
  },
  {
    verifies: 'a2a-1.0.version-unsupported',
    name: 'version 0.3, which is elsewhere',
    path: '/tasks?A2A-Version=0.3',
    status: 400,
    rpc: 'FAILED_PRECONDITION',
    reason: 'VERSION_NOT_SUPPORTED',
  },
  { verifies: [], name: 'no such path', path: '/nothing', status: 404, rpc: 'NOT_FOUND', reason: 'METHOD_NOT_FOUND' },
  { verifies: [], name: 'a path too long', path: '/a/b/c/d/e', status: 404, rpc: 'NOT_FOUND', reason: 'METHOD_NOT_FOUND' },
  { verifies: [], name: 'an escape that is none', path: '/tasks/%E0%A4%A', status: 404, rpc: 'NOT_FOUND', reason: 'TASK_NOT_FOUND' },
  {
    verifies: 'a2a-1.0.rest-query',
    name: 'a page of 0',
    path: '/tasks?pageSize=0',
    status: 400,
    rpc: 'INVALID_ARGUMENT',
    reason: 'INVALID_PARAMS',
  },
  {
    verifies: 'a2a-1.0.rest-query',
    name: 'an unknown state',
    path: '/tasks?status=working',
    status: 400,
    rpc: 'INVALID_ARGUMENT',
    reason: 'INVALID_PARAMS',
  },
]

describe('what REST refuses', () => {
  for (const { verifies: ids, name, status, rpc, reason, ...sent } of refused) {
    verifies(ids, name, async () => {
      const { url } = await startServer(demo())
      const answer = await send(url, sent)
      expect([answer.status, answer.headers.get('content-type')]).toEqual([status, 'application/a2a+json'])
      expect(answer.body).toEqual({
        error: {
          code: status,
          status: rpc,
          message: expect.stringMatching(/^[^\n]{5,300}$/),
          details: expect.arrayContaining([expect.objectContaining({ '@type': ERROR_INFO, reason, domain: 'a2a-protocol.org' })]),
        },
      })
    })
  }

  test('a method that a path has not is 405, and says which it has', async () => {
    const { url } = await startServer(demo())
    for (const [method, path, allow] of [
      ['GET', '/message:send', 'POST'],
      ['DELETE', '/tasks/x', 'GET'],
      ['POST', '/tasks/x/pushNotificationConfigs/y', 'GET, DELETE'],
    ] as const) {
      const { status, headers, body } = await send(url, { method, path })
      expect([status, headers.get('allow'), body.error.code]).toEqual([405, allow, 405])
    }
  })

  test('what the server refuses is google.rpc.Status too', async () => {
    const { url } = await startServer(demo(), { tokens: { ann: 'secret-of-ann-0123456789abcdef' } })
    const { status, headers, body } = await send(url, { path: '/tasks' })
    expect([status, headers.get('www-authenticate'), headers.get('content-type')]).toEqual([
      401,
      'Bearer realm="uamp"',
      'application/a2a+json',
    ])
    expect(body.error).toMatchObject({
      code: 401,
      status: 'UNAUTHENTICATED',
      details: [{ '@type': ERROR_INFO, reason: 'UNAUTHENTICATED' }],
    })
  })
})

verifies(['a2a-1.0.rest-routes', 'a2a-1.0.rest-media-type'], 'both media types are taken, one is given (§11.1)', async () => {
  const { url } = await startServer(demo())
  for (const type of ['application/json', 'application/a2a+json', 'application/a2a+json; charset=utf-8']) {
    const answer = await send(url, { method: 'POST', path: '/message:send', headers: { 'content-type': type }, body: message() })
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'application/a2a+json'])
    expect(answer.body.task.status.state).toBe('TASK_STATE_COMPLETED')
  }
})

verifies(['a2a-1.0.rest-query', 'a2a-1.0.version-query'], 'parameters in the query (§11.5)', async () => {
  const { url } = await startServer(demo())
  const { body } = await send(url, { method: 'POST', path: '/message:send', body: { message: user('hi', { contextId: 'a b&c' }) } })
  const query = 'contextId=a%20b%26c&status=TASK_STATE_COMPLETED&pageSize=1&includeArtifacts=true&historyLength=0&A2A-Version=1.0'
  const listed = await send(url, { path: `/tasks?${query}` })
  expect(listed.body).toMatchObject({
    tasks: [{ id: body.task.id, artifacts: [{ parts: [{ text: 'You said: hi' }] }] }],
    pageSize: 1,
    totalSize: 1,
  })
  expect(listed.body.tasks[0]).not.toHaveProperty('history')
  const snake = await send(url, { path: `/tasks/${body.task.id}?history_length=0` })
  expect(snake.body).not.toHaveProperty('history')
})

verifies('a2a-1.0.rest-routes', 'GET and POST subscribe alike (§11.3.2, a2a.proto)', async () => {
  const { opened, open } = gate()
  const { url } = await startServer(halfway(opened))
  const sent = await send(url, {
    method: 'POST',
    path: '/message:send',
    body: { ...message(), configuration: { returnImmediately: true } },
  })
  const path = `/tasks/${sent.body.task.id}:subscribe`
  const streams = await Promise.all(['GET', 'POST'].map((method) => fetch(`${url}/a2a/rest${path}`, { method })))
  for (const { status, headers } of streams)
    expect([status, headers.get('content-type')]).toEqual([200, expect.stringMatching(/^text\/event-stream/)])
  open()
  const texts = await Promise.all(streams.map((stream) => stream.text()))
  for (const text of texts) {
    const frames = text.split('\n\n').slice(0, -1)
    for (const frame of frames) expect(frame).toMatch(/^(id: [^\n]+\n)?data: \{"(task|statusUpdate|artifactUpdate)":\{.*\}\}$/)
    expect(frames[0]).toContain('data: {"task":')
    expect(frames.at(-1)).toContain('TASK_STATE_COMPLETED')
  }
})

verifies('a2a-1.0.rest-routes', 'an empty body is enough to cancel', async () => {
  const { url } = await startServer(halfway(gate().opened))
  const sent = await send(url, {
    method: 'POST',
    path: '/message:send',
    body: { ...message(), configuration: { returnImmediately: true } },
  })
  const { status, body } = await send(url, {
    method: 'POST',
    path: `/tasks/${sent.body.task.id}%3Acancel`,
    headers: { 'content-type': 'application/json' },
  })
  expect([status, body.status.state]).toEqual([200, 'TASK_STATE_CANCELED'])
  const again = await send(url, { method: 'POST', path: `/tasks/${sent.body.task.id}:cancel` })
  expect([again.status, again.body.error.details[0].reason]).toEqual([400, 'TASK_NOT_CANCELABLE'])
})

verifies('a2a-1.0.tenant', 'a tenant before the path is an agent', async () => {
  const { url } = await startServer([demo(), { ...demo(), name: 'other' }])
  const sent = await send(url, { method: 'POST', path: '/other/message:send', body: message() })
  const { id } = sent.body.task
  expect((await send(url, { path: `/other/tasks/${id}` })).body).toMatchObject({ id })
  expect((await send(`${url}/agents/other`, { path: `/tasks/${id}` })).body).toMatchObject({ id })
  expect((await send(url, { path: '/other/tasks' })).body.tasks).toMatchObject([{ id }])
  expect((await send(url, { path: '/nobody/tasks' })).status).toBe(400)
  expect((await send(url, { path: '/demo/extendedAgentCard' })).body.error.details[0].reason).toBe('UNSUPPORTED_OPERATION')
})

test.each(['nonsense/a2a/rest/tasks', 'tasks/x/a2a/rest/tasks', 'tasks/'])('there is nothing at /a2a/rest/%s', async (path) => {
  const { url } = await startServer(demo())
  const answer = await fetch(`${url}/a2a/rest/${path}`, { headers: { 'a2a-version': '1.0' } })
  expect(answer.status).toBe(404)
})
