import { describe, expect, test } from 'vitest'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'
import { brief, generous, given, patient, shy, three } from './legacy-agents.ts'
import { all, ask, ID, listen, newId, TIME, type Wire } from './legacy-wire.ts'

const said = (text: string, more: object = {}) => ({ messageId: newId(), role: 'ROLE_USER', content: [{ text }], ...more })
const post = (url: string, body?: unknown) => ask(url, { method: 'POST', body })

describe('A2A 0.3 over REST', () => {
  verifies('a2a-0.3.rest', 'POST /v1/message:send', async () => {
    const { url } = await startServer(three)
    const request = said('go')
    const { status, headers, body } = await post(`${url}/a2a/rest/v1/message:send`, { request, configuration: { blocking: true } })
    expect({ status, type: headers.get('content-type') }).toEqual({ status: 200, type: 'application/json' })
    expect(body).toEqual({
      task: {
        id: ID,
        contextId: ID,
        status: { state: 'TASK_STATE_COMPLETED', timestamp: TIME },
        artifacts: [{ artifactId: ID, parts: [{ text: 'a "b" c' }] }],
        history: [{ ...request, taskId: ID, contextId: ID }],
      },
    })
  })

  verifies('a2a-0.3.rest', 'POST /v1/message:send may be answered with a message', async () => {
    const { url } = await startServer(brief)
    const { body } = await post(`${url}/a2a/rest/v1/message:send`, { message: said('hi', { contextId: 'c' }) })
    expect(body).toEqual({ message: { messageId: ID, role: 'ROLE_AGENT', contextId: 'c', content: [{ text: 'Hi.' }] } })
  })

  verifies(['a2a-0.3.rest', 'a2a-0.3.parts'], 'parts of every kind, in and out', async () => {
    const { url } = await startServer([given, generous])
    const content = [
      { text: 'look' },
      { file: { fileWithBytes: 'AAEC', mimeType: 'image/png' } },
      { file: { fileWithUri: 'https://a.example/b.csv', mimeType: 'text/csv' } },
      { data: { data: { n: 1 } } },
    ]
    const { body } = await post(`${url}/agents/given/a2a/rest/v1/message:send`, { message: said('', { content }) })
    expect(JSON.parse(body.task.artifacts[0].parts[0].text).items.map(({ type }: Wire) => type)).toEqual(['text', 'image', 'file', 'file'])
    expect(body.task.history[0].content).toEqual(content)
    const { body: out } = await post(`${url}/agents/generous/a2a/rest/v1/message:send`, { message: said('go') })
    expect(out.task.artifacts.flatMap(({ parts }: Wire) => parts)).toMatchObject([
      { text: 'Look:' },
      { file: { fileWithBytes: 'AAEC', mimeType: 'image/png' } },
      { data: { data: { n: 1 } } },
    ])
  })

  verifies(['a2a-0.3.rest', 'a2a-0.3.final'], 'POST /v1/message:stream', async () => {
    const { url } = await startServer(three)
    const events = (await all(listen(`${url}/a2a/rest/v1/message:stream`, { body: { message: said('go') } }))).map(({ data }) => data)
    expect(events.map((event) => Object.keys(event)[0])).toEqual([
      'task',
      'statusUpdate',
      ...Array.from({ length: 4 }, () => 'artifactUpdate'),
      'statusUpdate',
    ])
    const place = { taskId: events[0].task.id, contextId: events[0].task.contextId }
    expect(events[3]).toEqual({ artifactUpdate: { ...place, artifact: { artifactId: ID, parts: [{ text: '"b" ' }] }, append: true } })
    expect(events.at(-1)).toEqual({ statusUpdate: { ...place, status: { state: 'TASK_STATE_COMPLETED', timestamp: TIME }, final: true } })
  })

  verifies(['a2a-0.3.rest', 'a2a-0.3.history-length'], 'GET /v1/tasks/{id}', async () => {
    const { url } = await startServer(shy)
    const { body } = await post(`${url}/a2a/rest/v1/message:send`, { message: said('do it') })
    const { id, contextId } = body.task
    await post(`${url}/a2a/rest/v1/message:send`, { message: said('yes', { taskId: id, contextId }) })
    const { body: task } = await ask(`${url}/a2a/rest/v1/tasks/${id}`)
    expect(task).toMatchObject({ id, contextId, status: { state: 'TASK_STATE_COMPLETED' }, artifacts: [{ parts: [{ text: 'I did' }] }] })
    expect(task.history).toHaveLength(3)
    expect((await ask(`${url}/a2a/rest/v1/tasks/${id}?historyLength=1`)).body.history).toHaveLength(1)
    expect((await ask(`${url}/a2a/rest/v1/tasks/${id}?history_length=2`)).body.history).toHaveLength(2)
  })

  verifies(
    ['a2a-0.3.rest', 'a2a-0.3.cancel', 'a2a-0.3.resubscribe'],
    'POST /v1/tasks/{id}:subscribe, the same by GET, and :cancel',
    async () => {
      const { url } = await startServer(patient)
      const { body } = await post(`${url}/a2a/rest/v1/message:send`, { message: said('go'), configuration: {} })
      expect(body.task.status.state).toBe('TASK_STATE_WORKING')
      const tasks = `${url}/a2a/rest/v1/tasks`
      const streams = ['POST', 'GET'].map((method) => listen(`${tasks}/${body.task.id}:subscribe`, { method }))
      for (const stream of streams) {
        const { value } = await stream.next()
        expect(value?.data).toMatchObject({ task: { id: body.task.id, status: { state: 'TASK_STATE_WORKING' } } })
      }
      const { status, body: cancelled } = await post(`${tasks}/${body.task.id}:cancel`)
      expect({ status, state: cancelled.status.state }).toEqual({ status: 200, state: 'TASK_STATE_CANCELLED' })
      for (const stream of streams) {
        const rest = await all(stream)
        expect(rest.at(-1)?.data).toMatchObject({ statusUpdate: { status: { state: 'TASK_STATE_CANCELLED' }, final: true } })
      }
      const again = await post(`${tasks}/${body.task.id}:cancel`)
      expect(again).toMatchObject({ status: 409, body: { code: -32002, message: expect.stringContaining('has ended') } })
    },
  )

  verifies('a2a-0.3.list', 'GET /v1/tasks', async () => {
    const { url } = await startServer(three)
    for (const text of ['one', 'two']) await post(`${url}/a2a/rest/v1/message:send`, { message: said(text) })
    const { body } = await ask(`${url}/a2a/rest/v1/tasks`)
    expect(body.map(({ history }: Wire) => history[0].content[0].text)).toEqual(['two', 'one'])
  })

  verifies(['a2a-0.3.rest', 'a2a-0.3.push'], 'POST, GET and DELETE /v1/tasks/{id}/pushNotificationConfigs', async () => {
    const { url } = await startServer(shy)
    const { body } = await post(`${url}/a2a/rest/v1/message:send`, { message: said('go') })
    const { id } = body.task
    const configs = `${url}/a2a/rest/v1/tasks/${id}/pushNotificationConfigs`
    const named = (name: string, config: object): Wire => ({
      name: `tasks/${id}/pushNotificationConfigs/${name}`,
      pushNotificationConfig: { id: name, ...config },
    })
    // As the definition has it, and the official client sends it.
    const bare = named('a', { url: 'https://a.example/a', authentication: { schemes: ['Bearer'], credentials: 's' } })
    expect((await post(configs, bare)).body).toEqual(bare)
    // As the specification has it, and the official server wants it.
    const inside = {
      parent: `tasks/${id}`,
      config_id: 'b',
      config: { push_notification_config: { url: 'https://a.example/b', token: '', authentication: {} } },
    }
    expect((await post(configs, inside)).body).toEqual(named('b', { url: 'https://a.example/b' }))
    expect((await ask(configs)).body).toEqual({ configs: [bare, named('b', { url: 'https://a.example/b' })], nextPageToken: '' })
    expect((await ask(`${configs}/a`)).body).toEqual(bare)
    expect(await ask(`${configs}/a`, { method: 'DELETE' })).toMatchObject({ status: 204, body: undefined })
    expect(await ask(`${configs}/a`)).toMatchObject({ status: 404, body: { code: -32001 } })
  })

  verifies(['a2a-0.3.rest', 'a2a-0.3.extended-card'], 'GET /v1/card', async () => {
    const { url } = await startServer(three)
    expect(await ask(`${url}/a2a/rest/v1/card`)).toMatchObject({ status: 400, body: { code: -32007 } })
  })

  describe('what is refused has a code, a message and data', () => {
    const go = said('go')
    const rows: readonly (readonly [name: string, request: (url: string) => Promise<unknown>, status: number, code: number])[] = [
      ['no task of this id', (url) => ask(`${url}/tasks/nope`), 404, -32001],
      ['nothing to cancel', (url) => post(`${url}/tasks/nope:cancel`), 404, -32001],
      ['nothing to follow', (url) => post(`${url}/tasks/nope:subscribe`), 404, -32001],
      ['a history of -1', (url) => ask(`${url}/tasks/nope?historyLength=-1`), 400, -32602],
      ['a history of many', (url) => ask(`${url}/tasks/nope?historyLength=many`), 400, -32602],
      ['no parts', (url) => post(`${url}/message:send`, { message: { ...go, content: [] } }), 400, -32602],
      ['no message', (url) => post(`${url}/message:send`, {}), 400, -32602],
      ['no body', (url) => post(`${url}/message:send`), 400, -32602],
      ['no object', (url) => post(`${url}/message:send`, [go]), 400, -32602],
      ['an unknown role', (url) => post(`${url}/message:stream`, { message: { ...go, role: 'ROLE_UNSPECIFIED' } }), 400, -32602],
      ['no JSON', (url) => post(`${url}/message:send`, '{'), 400, -32700],
      [
        'a text',
        (url) => ask(`${url}/message:send`, { method: 'POST', body: 'hi', headers: { 'content-type': 'text/plain' } }),
        415,
        -32005,
      ],
      ['a config without a url', (url) => post(`${url}/tasks/nope/pushNotificationConfigs`, { config: {} }), 400, -32602],
      ['a path that is not there', (url) => ask(`${url}/nothing`), 404, -32601],
      ['a method that is not there', (url) => ask(`${url}/message:send`), 405, -32601],
      ['another version', (url) => ask(`${url}/tasks/nope`, { headers: { 'a2a-version': '1.0' } }), 400, -32009],
    ]
    for (const [name, request, status, code] of rows) {
      verifies('a2a-0.3.rest-errors', name, async () => {
        const { url } = await startServer(three)
        expect(await request(`${url}/a2a/rest/v1`)).toMatchObject({
          status,
          body: { code, message: expect.stringMatching(/\w/), data: { reason: expect.stringMatching(/^[A-Z_]+$/) } },
        })
      })
    }

    test('also before it gets here', async () => {
      const { url } = await startServer(three, {
        tokens: { me: 'secret-0123456789abcdef' },
        allowAnonymous: false,
        limits: { bodyBytes: 1_000 },
      })
      expect(await ask(`${url}/a2a/rest/v1/tasks/x`)).toMatchObject({
        status: 401,
        body: { code: -32603, data: { reason: 'UNAUTHENTICATED' } },
      })
      const body = { message: said('x'.repeat(2_000)) }
      const headers = { authorization: 'Bearer secret-0123456789abcdef' }
      expect(await ask(`${url}/a2a/rest/v1/message:send`, { method: 'POST', body, headers })).toMatchObject({
        status: 413,
        body: { data: { reason: 'REQUEST_TOO_LARGE' } },
      })
    })
  })
})
