import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'
import { patient, shy, three } from './legacy-agents.ts'
import { all, message, newId, rpc, type Wire } from './legacy-wire.ts'

const base = () => ({ messageId: newId(), role: 'user', parts: [{ kind: 'text', text: 'x' }] })
const part = (value: object) => ({ message: { ...base(), parts: [value] } })

/** Method, parameters, and what the answer says of them. */
const rows: readonly (readonly [name: string, method: string, params: unknown, code: number, field?: string])[] = [
  ['no parameters', 'message/send', undefined, -32602],
  ['parameters that are an array', 'message/send', [], -32602],
  ['no message', 'message/send', { '': 'x' }, -32602, 'message'],
  ['no parts', 'message/send', { message: { ...base(), parts: [] } }, -32602, 'message.parts'],
  ['parts that are a text', 'message/stream', { message: { ...base(), parts: 'x' } }, -32602, 'message.parts'],
  ['no messageId', 'message/send', { message: { ...base(), messageId: undefined } }, -32602, 'message.messageId'],
  ['an unknown role', 'message/send', { message: { ...base(), role: 'ROLE_USER' } }, -32602, 'message.role'],
  ['a part of unknown kind', 'message/send', part({ kind: 'picture' }), -32602, 'message.parts[0].kind'],
  ['a part without a kind', 'message/send', part({ text: 'x' }), -32602, 'message.parts[0].kind'],
  [
    'a file with bytes and a uri',
    'message/send',
    part({ kind: 'file', file: { bytes: 'AA', uri: 'https://a.example' } }),
    -32602,
    'message.parts[0].file',
  ],
  ['a file with neither', 'message/send', part({ kind: 'file', file: {} }), -32602, 'message.parts[0].file'],
  ['bytes that are not base64', 'message/send', part({ kind: 'file', file: { bytes: 'é' } }), -32602, 'message.parts[0].file.bytes'],
  ['a uri that is none', 'message/send', part({ kind: 'file', file: { uri: 'b.csv' } }), -32602, 'message.parts[0].file.uri'],
  ['data that is a number', 'message/send', part({ kind: 'data', data: 1 }), -32602, 'message.parts[0].data'],
  ['a history of -1', 'message/send', { message: base(), configuration: { historyLength: -1 } }, -32602, 'configuration.historyLength'],
  ['blocking that is a text', 'message/send', { message: base(), configuration: { blocking: 'no' } }, -32602, 'configuration.blocking'],
  ['a task that is not there', 'message/send', { message: { ...base(), taskId: 'nope' } }, -32001],
  ['no task to get', 'tasks/get', { id: 'nope' }, -32001],
  ['no id to get', 'tasks/get', {}, -32602, 'id'],
  ['an empty id', 'tasks/get', { id: '' }, -32602, 'id'],
  ['no task to cancel', 'tasks/cancel', { id: 'nope' }, -32001],
  ['no task to follow', 'tasks/resubscribe', { id: 'nope' }, -32001],
  [
    'a webhook without a url',
    'tasks/pushNotificationConfig/set',
    { taskId: 'nope', pushNotificationConfig: {} },
    -32602,
    'pushNotificationConfig.url',
  ],
  [
    'no task for a webhook',
    'tasks/pushNotificationConfig/set',
    { taskId: 'nope', pushNotificationConfig: { url: 'https://a.example' } },
    -32001,
  ],
  ['no config to delete', 'tasks/pushNotificationConfig/delete', { id: 'nope' }, -32602, 'pushNotificationConfigId'],
  ['an unknown method', 'tasks/list', {}, -32601],
]

describe('what is wrong with a request of 0.3 is told', () => {
  for (const [name, method, params, code, field] of rows) {
    verifies('a2a-0.3.errors', name, async () => {
      const { url } = await startServer(three)
      const { error } = await rpc(url).call(method, params)
      expect(error).toMatchObject({ code, message: expect.stringMatching(/\w/) })
      if (method !== 'tasks/list') expect(error.data.field).toBe(field)
    })
  }

  verifies('a2a-0.3.errors', 'a request that is none', async () => {
    const { url } = await startServer(three)
    const api = rpc(url)
    expect((await api.post('{')).body).toMatchObject({ id: null, error: { code: -32700 } })
    expect((await api.post([])).body).toMatchObject({ id: null, error: { code: -32600 } })
    expect((await api.post({ jsonrpc: '1', id: 1, method: 'message/send' })).body).toMatchObject({ id: 1, error: { code: -32600 } })
    expect((await api.post({ jsonrpc: '2.0', id: {}, method: 'message/send' })).body).toMatchObject({ id: null, error: { code: -32600 } })
    expect((await api.post({ jsonrpc: '2.0', id: 1, method: 'message/send' }, { 'content-type': 'text/plain' })).body).toMatchObject({
      error: { code: -32005 },
    })
  })

  test('a request without an id that is wrong is told so all the same: the test kit of 0.3 sends such', async () => {
    const { url } = await startServer(three)
    const { post } = rpc(url)
    const told = async (method: string, params: object) => (await post({ jsonrpc: '2.0', method, params })).body
    expect(await told('message/ssend', {})).toMatchObject({ id: null, error: { code: -32601 } })
    expect(await told('message/send', { '': 'x' })).toMatchObject({ id: null, error: { code: -32602 } })
  })

  verifies('a2a-0.3.errors', 'a message to a task that is being worked on', async () => {
    const { url } = await startServer(patient)
    const api = rpc(url)
    const { result } = await api.call('message/send', { message: base(), configuration: { blocking: false } })
    expect(await api.call('message/send', { message: { ...base(), taskId: result.id } })).toMatchObject({ error: { code: -32004 } })
    expect(await api.call('message/send', { message: { ...base(), taskId: result.id, contextId: 'other' } })).toMatchObject({
      error: { code: -32602 },
    })
  })

  verifies('a2a-0.3.errors', 'a webhook on this machine or in a private network', async () => {
    const { url } = await startServer(shy)
    const api = rpc(url)
    const { result } = await api.call('message/send', { message: base() })
    for (const hook of ['http://127.0.0.1:9/', 'https://169.254.169.254/', 'https://[::1]/', 'ftp://a.example/']) {
      const params = { taskId: result.id, pushNotificationConfig: { url: hook } }
      expect(await api.call('tasks/pushNotificationConfig/set', params), hook).toMatchObject({ error: { code: -32602 } })
    }
  })

  test('20 MB are refused, and 100 kB are not', async () => {
    const { url } = await startServer(three)
    const api = rpc(url)
    const { result } = await api.call('message/send', { message: message('x'.repeat(100_000)) })
    expect(result.status.state).toBe('completed')
    const { status, body } = await api.post({
      jsonrpc: '2.0',
      id: 1,
      method: 'message/send',
      params: { message: message('x'.repeat(20_000_000)) },
    })
    expect({ status, reason: JSON.stringify(body) }).toEqual({ status: 413, reason: expect.stringContaining('REQUEST_TOO_LARGE') })
  })
})

verifies(['a2a-0.3.push-body'], 'a webhook gets the task in the shape of 0.3', async () => {
  const posted: { headers: IncomingHttpHeaders; body: Wire }[] = []
  let completed: () => void = () => undefined
  const done = new Promise<void>((resolve) => (completed = resolve))
  const hook = createServer((request, response) => {
    let text = ''
    request.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
    request.on('end', () => {
      const body: Wire = JSON.parse(text)
      posted.push({ headers: request.headers, body })
      response.end()
      if (body.status.state === 'completed') completed()
    })
  })
  await new Promise<void>((resolve) => hook.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void hook.close())
  const at = `http://127.0.0.1:${(hook.address() as AddressInfo).port}/hook`
  const { url } = await startServer(three, { outbound: { allow: ['127.0.0.1'] } })
  const configuration = {
    pushNotificationConfig: { url: at, token: 'for you', authentication: { schemes: ['Bearer'], credentials: 'secret' } },
  }
  const events = await all(rpc(url).stream('message/stream', { message: message('go'), configuration }))
  await done
  const last = posted.at(-1)
  expect(last?.headers).toMatchObject({
    'content-type': 'application/json',
    'x-a2a-notification-token': 'for you',
    authorization: 'Bearer secret',
  })
  expect(last?.body).toMatchObject({
    kind: 'task',
    id: events[0].id,
    status: { state: 'completed' },
    artifacts: [{ parts: [{ kind: 'text', text: 'a "b" c' }] }],
  })
})
