import { describe, expect, test } from 'vitest'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { UampError } from '../../src/protocol/errors.ts'
import { coin } from '../support/money.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'
import { brief, generous, given, patient, priced, shy, three } from './legacy-agents.ts'
import { all, ask, early, ID, listen, type Wire } from './legacy-wire.ts'

const create = async (url: string, body: object, headers = {}): Promise<Wire[]> =>
  (await all(listen(`${url}/tasks`, { body, headers }))).map(({ event, data }) => [event, data])

const SECONDS: Wire = expect.any(Number)

describe('/tasks', () => {
  verifies(['uamp-tasks.create', 'uamp-tasks.get'], 'a task says what it does, and can be looked at', async () => {
    const { url } = await startServer(three)
    const events = await create(`${url}/agents/three`, { message: early('What is the weather?') })
    const { id } = events[0][1]
    const said = (text: string): Wire => ['task.message', { role: 'agent', parts: [{ type: 'text', text }] }]
    expect(events).toEqual([
      ['task.started', { id: ID, status: 'running', createdAt: SECONDS }],
      said('a '),
      said('"b" '),
      said('c'),
      ['task.completed', { id, status: 'completed', completedAt: SECONDS }],
    ])
    const task = { id, contextId: ID, status: 'completed', updatedAt: SECONDS, result: { content: 'a "b" c' }, error: null }
    expect(await ask(`${url}/tasks/${id}`)).toMatchObject({ status: 200, body: task })
    expect((await ask(`${url}/tasks`)).body).toEqual({ tasks: [task], next: null })
    expect((await ask(`${url}/tasks/${id}/artifacts`)).body).toEqual({
      task_id: id,
      artifacts: [{ id: ID, type: 'text', mimeType: 'text/plain', data: 'a "b" c', createdAt: SECONDS }],
    })
  })

  verifies('uamp-tasks.create', 'media is said as well, and is among the artifacts', async () => {
    const { url } = await startServer(generous)
    const events = await create(url, { message: early('go') })
    expect(events.slice(1, -1).map(([, { parts }]) => parts[0])).toMatchObject([
      { type: 'text', text: 'Look:' },
      { type: 'file', file: { bytes: 'AAEC', mimeType: 'image/png' } },
      { type: 'data', data: { n: 1 } },
    ])
    const { body } = await ask(`${url}/tasks/${events[0][1].id}/artifacts`)
    expect(body.artifacts).toMatchObject([
      { type: 'text' },
      { id: 'dot', type: 'file', data: 'AAEC' },
      { id: 'n', type: 'data', data: { n: 1 } },
    ])
  })

  verifies('uamp-tasks.create', 'a client may choose the id, and several messages are one', async () => {
    const { url } = await startServer([given, brief])
    const parts = [{ type: 'file', file: { name: 'a.csv', mimeType: 'text/csv', data: 'AAEC' } }]
    const messages = [early('one'), { role: 'user', parts }]
    const events = await create(`${url}/agents/given`, { id: 'mine', contextId: 'c', messages })
    expect(events[0]).toEqual(['task.started', { id: 'mine', status: 'running', createdAt: SECONDS }])
    expect(JSON.parse(events[1][1].parts[0].text).items).toMatchObject([
      { type: 'text', text: 'one' },
      { type: 'file', filename: 'a.csv', file: 'AAEC' },
    ])
    expect((await ask(`${url}/agents/given/tasks/mine`)).body).toMatchObject({ id: 'mine', contextId: 'c' })
    expect(await create(`${url}/agents/brief`, { id: 'b', message: early('hi') })).toEqual([
      ['task.started', { id: 'b', status: 'running' }],
      ['task.message', { role: 'agent', parts: [{ type: 'text', text: 'Hi.' }] }],
      ['task.completed', { id: 'b', status: 'completed' }],
    ])
  })

  verifies(['uamp-tasks.failed', 'uamp-tasks.get'], 'a task that fails says why', async () => {
    const broken = defineAgent('broken', async function* () {
      throw new UampError('provider_error', 'The model is not there')
    })
    const { url } = await startServer(broken)
    const events = await create(url, { message: early('go') })
    const failed = { id: ID, status: 'failed', error: 'The model is not there', code: 'provider_error' }
    expect(events.at(-1)).toEqual(['task.failed', failed])
    expect((await ask(`${url}/tasks/${events[0][1].id}`)).body).toMatchObject(failed)
  })

  verifies(['uamp-tasks.cancel', 'uamp-tasks.get'], 'a task that runs is cancelled, one that is over is not', async () => {
    const { url } = await startServer(patient)
    const stream = listen(`${url}/tasks`, { body: { id: 'mine', message: early('go') } })
    await stream.next()
    await stream.next()
    expect((await ask(`${url}/tasks/mine`)).body).toMatchObject({ status: 'running', result: { content: 'working' } })
    expect(await ask(`${url}/tasks/mine`, { method: 'DELETE' })).toMatchObject({
      status: 200,
      body: { id: 'mine', status: 'cancelled', cancelled: true },
    })
    expect((await all(stream)).at(-1)).toMatchObject({ event: 'task.failed', data: { id: 'mine', status: 'cancelled', code: 'cancelled' } })
    expect((await ask(`${url}/tasks/mine`, { method: 'DELETE' })).body).toEqual({ id: 'mine', status: 'cancelled', cancelled: true })
    const other = await startServer(three)
    await create(other.url, { id: 'done', message: early('go') })
    expect((await ask(`${other.url}/tasks/done`, { method: 'DELETE' })).body).toEqual({ id: 'done', status: 'completed', cancelled: false })
  })

  verifies('uamp-tasks.payment', 'what is not paid for fails, and a new task that pays does not', async () => {
    const server = await startServer(priced)
    const { url } = server
    const refused = {
      id: 'unpaid',
      status: 'failed',
      error: 'Payment required: 0.01 USD. Send a new task with a payment token in the header X-PAYMENT',
      code: 'payment_required',
      status_code: 402,
      accepts: [
        expect.objectContaining({ scheme: 'token', amount: '0.01', currency: 'USD', expires_at: expect.any(Number) as unknown }) as unknown,
      ],
    }
    const unpaid = await create(url, { id: 'unpaid', message: early('go') })
    expect(unpaid.map(([event]) => event)).toEqual(['task.started', 'task.failed'])
    expect(unpaid.at(-1)).toEqual(['task.failed', refused])
    expect((await ask(`${url}/tasks/unpaid`)).body).toMatchObject(refused)
    const paid = await create(url, { message: early('go') }, { 'x-payment': await coin(server, '0.01') })
    expect(paid.slice(1).map(([event, data]) => [event, data.parts?.[0].text])).toEqual([
      ['task.message', 'paid with a token'],
      ['task.completed', undefined],
    ])
  })

  test('a task that failed for want of money stays failed when it is deleted', async () => {
    const { url } = await startServer(priced)
    await create(url, { id: 'unpaid', message: early('go') })
    for (let again = 0; again < 2; again++) {
      expect((await ask(`${url}/tasks/unpaid`, { method: 'DELETE' })).body).toEqual({ id: 'unpaid', status: 'failed', cancelled: false })
      expect((await ask(`${url}/tasks/unpaid`)).body).toMatchObject({ status: 'failed', code: 'payment_required', status_code: 402 })
    }
  })

  test('a task that asks says its question, and goes on with the answer', async () => {
    const { url } = await startServer(shy)
    const asked = await create(url, { id: 'mine', message: early('do it') })
    expect(asked.slice(1)).toMatchObject([
      [
        'task.message',
        {
          parts: [
            { type: 'text', text: 'May I?' },
            { type: 'data', data: { type: 'x.approval.request' } },
          ],
        },
      ],
      ['task.input_required', { id: 'mine', status: 'running' }],
    ])
    expect((await ask(`${url}/tasks/mine`)).body).toMatchObject({ status: 'running' })
    const answered = await create(url, { id: 'mine', message: early('no') })
    expect(answered.slice(1)).toMatchObject([
      ['task.message', { parts: [{ text: 'I did not' }] }],
      ['task.completed', { id: 'mine' }],
    ])
  })

  test('the list has pages, the newest first, and only what is mine', async () => {
    const { url } = await startServer(three, { tokens: { one: 'one-0123456789abcdef', two: 'two-0123456789abcdef' } })
    const mine = { authorization: 'Bearer one-0123456789abcdef' }
    for (const id of ['a', 'b', 'c']) await create(url, { id, message: early('go') }, mine)
    const page = async (query: string) => (await ask(`${url}/tasks?${query}`, { headers: mine })).body
    const first = await page('limit=2')
    expect(first.tasks.map(({ id }: Wire) => id)).toEqual(['c', 'b'])
    const second = await page(`limit=2&after=${encodeURIComponent(first.next)}`)
    expect([second.tasks.map(({ id }: Wire) => id), second.next]).toEqual([['a'], null])
    const other = { authorization: 'Bearer two-0123456789abcdef' }
    expect((await ask(`${url}/tasks`, { headers: other })).body).toEqual({ tasks: [], next: null })
    for (const method of ['GET', 'DELETE']) {
      expect(await ask(`${url}/tasks/a`, { method, headers: other })).toMatchObject({ status: 404, body: { task_id: 'a' } })
    }
  })

  const rows: readonly (readonly [name: string, body: unknown, message: RegExp])[] = [
    ['no message', {}, /must have a "message"/],
    ['no messages', { messages: [] }, /must have a "message"/],
    ['no parts', { message: { role: 'user', parts: [] } }, /"message.parts" must have at least one part/],
    ['an unknown role', { message: { ...early('x'), role: 'system' } }, /"message.role" must be "user"/],
    ['an unknown part', { message: { role: 'user', parts: [{ type: 'x' }] } }, /"message.parts\[0\].kind" must be one of/],
    ['no JSON', '{', /not JSON/],
    ['an array', [], /must be an object/],
  ]
  for (const [name, body, message] of rows) {
    test(`${name} is refused, before there is a task`, async () => {
      const { url } = await startServer(three)
      expect(await ask(`${url}/tasks`, { method: 'POST', body })).toMatchObject({
        status: 400,
        body: { error: expect.stringMatching(message), code: 'invalid_request', status_code: 400 },
      })
      expect((await ask(`${url}/tasks`)).body.tasks).toEqual([])
    })
  }

  test('what is not there, or not allowed, is told in the same form', async () => {
    const { url } = await startServer(three, { tokens: { me: 'secret-0123456789abcdef' }, allowAnonymous: false })
    const headers = { authorization: 'Bearer secret-0123456789abcdef' }
    expect(await ask(`${url}/tasks/nope`, { headers })).toMatchObject({
      status: 404,
      body: { error: expect.stringContaining('not found'), code: 'not_found', status_code: 404, task_id: 'nope' },
    })
    expect(await ask(`${url}/tasks/nope/artifacts`, { headers })).toMatchObject({ status: 404, body: { task_id: 'nope' } })
    expect(await ask(`${url}/tasks?limit=0`, { headers })).toMatchObject({ status: 400, body: { code: 'invalid_request', field: 'limit' } })
    expect(await ask(`${url}/tasks/nope`)).toMatchObject({ status: 401, body: { code: 'unauthorized', status_code: 401 } })
    expect(await ask(`${url}/tasks/nope`, { method: 'PUT', headers, body: {} })).toMatchObject({ status: 405, body: { status_code: 405 } })
  })
})
