import { describe, expect, test } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'
import { BINDINGS, user, type Wire } from './v1-wire.ts'

interface Row {
  readonly name: string
  readonly operation?: string
  readonly params: object
  readonly field: string | undefined
}

const part = (given: object) => ({ message: user('', { parts: [given] }) })
const { messageId: _, ...withoutId } = user('hi')
const { role: __, ...withoutRole } = user('hi')
const { parts: ___, ...withoutParts } = user('hi')

/** What is refused before anything is done for it, and where it is wrong. */
const refused: readonly Row[] = [
  { name: 'no message', params: {}, field: 'message' },
  { name: 'a message that is none', params: { message: 'hi' }, field: 'message' },
  { name: 'parts: []', params: { message: user('', { parts: [] }) }, field: 'message.parts' },
  { name: 'no parts', params: { message: withoutParts }, field: 'message.parts' },
  { name: 'an unknown role', params: { message: user('hi', { role: 'user' }) }, field: 'message.role' },
  { name: 'the role of the agent', params: { message: user('hi', { role: 'ROLE_AGENT' }) }, field: 'message.role' },
  { name: 'no role', params: { message: withoutRole }, field: 'message.role' },
  { name: 'a role that is no text', params: { message: user('hi', { role: { toString: 1, valueOf: 1 } }) }, field: 'message.role' },
  { name: 'no messageId', params: { message: withoutId }, field: 'message.messageId' },
  { name: 'an empty messageId', params: { message: user('hi', { messageId: '' }) }, field: 'message.messageId' },
  { name: 'text and raw', params: part({ text: 'a', raw: 'AA==' }), field: 'message.parts[0]' },
  { name: 'url and data', params: part({ url: 'https://a.example/b', data: null }), field: 'message.parts[0]' },
  { name: 'a part of an older generation', params: part({ kind: 'text', file: {} }), field: 'message.parts[0]' },
  { name: 'an empty part', params: part({}), field: 'message.parts[0]' },
  { name: 'raw that is not base64', params: part({ raw: 'a*b' }), field: 'message.parts[0].raw' },
  { name: 'base64 that is cut short', params: part({ raw: 'AAAAA' }), field: 'message.parts[0].raw' },
  { name: 'a url that is none', params: part({ url: 'nowhere' }), field: 'message.parts[0].url' },
  { name: 'metadata that is no object', params: part({ text: 'a', metadata: [] }), field: 'message.parts[0].metadata' },
  { name: 'too many parts', params: { message: user('', { parts: Array(1025).fill({ text: 'a' }) }) }, field: 'message.parts' },
  { name: 'an endless contextId', params: { message: user('a', { contextId: 'c'.repeat(257) }) }, field: 'message.contextId' },
  {
    name: 'a negative historyLength',
    params: { message: user('a'), configuration: { historyLength: -1 } },
    field: 'configuration.historyLength',
  },
  {
    name: 'a webhook without a URL',
    params: { message: user('a'), configuration: { taskPushNotificationConfig: {} } },
    field: 'configuration.taskPushNotificationConfig.url',
  },
  {
    name: 'credentials that would be another header',
    operation: 'CreateTaskPushNotificationConfig',
    params: { taskId: 't', url: 'https://a.example', authentication: { scheme: 'Bearer', credentials: 'a\r\nx: y' } },
    field: 'authentication.credentials',
  },
  { name: 'pageSize 0', operation: 'ListTasks', params: { pageSize: 0 }, field: 'pageSize' },
  { name: 'pageSize 101', operation: 'ListTasks', params: { pageSize: 101 }, field: 'pageSize' },
  { name: 'half a pageSize', operation: 'ListTasks', params: { pageSize: 1.5 }, field: 'pageSize' },
  { name: 'an unknown state', operation: 'ListTasks', params: { status: 'working' }, field: 'status' },
  { name: 'a time that is none', operation: 'ListTasks', params: { statusTimestampAfter: 'yesterday' }, field: 'statusTimestampAfter' },
  { name: 'a page token that is none', operation: 'ListTasks', params: { pageToken: 'x' }, field: 'pageToken' },
  { name: 'a negative historyLength', operation: 'GetTask', params: { id: 't', historyLength: -5 }, field: 'historyLength' },
  { name: 'another tenant', operation: 'ListTasks', params: { tenant: 'acme' }, field: 'tenant' },
]

describe.each(BINDINGS)('over %s', (__name, binding) => {
  for (const { name, operation = 'SendMessage', params, field } of refused) {
    verifies('a2a-1.0.required-fields', `${operation}: ${name} (§5.7)`, async () => {
      const { url } = await startServer(demo())
      const { error } = await binding(url).call(operation, params)
      expect(error).toMatchObject({ reason: 'INVALID_PARAMS', field, message: expect.stringMatching(/\w/) })
      expect((await binding(url).call('ListTasks', {})).result.totalSize).toBe(0)
    })
  }

  verifies('a2a-1.0.unknown-fields', 'fields that nobody knows are ignored (§5.7)', async () => {
    const { url } = await startServer(demo())
    const message = user('hi', { parts: [{ text: 'hi', colour: 'red' }], mood: 'good' })
    const { result } = await binding(url).call('SendMessage', { message, configuration: { haste: 1 }, extra: {} })
    expect(result.task.artifacts[0].parts[0].text).toBe('You said: hi')
  })

  verifies('a2a-1.0.proto-json', 'ProtoJSON: other names, numbers, text and null (§5.5)', async () => {
    const { url } = await startServer(demo())
    const message = {
      message_id: 'm',
      role: 1,
      parts: [{ text: 'hi', media_type: 'text/plain', url: null }],
      context_id: 'c',
      task_id: null,
    }
    const configuration = { history_length: '0', task_push_notification_config: null }
    const { result } = await binding(url).call('SendMessage', { message, configuration })
    expect(result.task).toMatchObject({ contextId: 'c', status: { state: 'TASK_STATE_COMPLETED' } })
    expect(result.task).not.toHaveProperty('history')
    const listed = await binding(url).call('ListTasks', { context_id: 'c', page_size: '1', status: 3 })
    expect(listed.result).toMatchObject({ tasks: [{ id: result.task.id }], pageSize: 1 })
  })

  test('20 MB are too large, and said so in the words of the binding', async () => {
    const { url } = await startServer(demo())
    const { status, error } = await tooLarge(url, binding === BINDINGS[0][1] ? '/a2a' : '/a2a/rest/message:send')
    expect([status, error.message]).toEqual([413, expect.stringContaining('bytes')])
  })

  test('100 kB are not', async () => {
    const { url } = await startServer(demo())
    const { result } = await binding(url).call('SendMessage', { message: user('x'.repeat(100_000)) })
    expect(result.task.artifacts[0].parts[0].text).toHaveLength(100_000 + 'You said: '.length)
  })
})

async function tooLarge(url: string, path: string): Promise<{ status: number; error: Wire }> {
  const headers = { 'content-type': 'application/json' }
  const response = await fetch(url + path, { method: 'POST', headers, body: `{"x":"${'x'.repeat(20 * 1024 * 1024)}"}` })
  const { error }: Wire = await response.json()
  return { status: response.status, error }
}
