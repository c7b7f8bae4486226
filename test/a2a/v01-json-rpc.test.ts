import { describe, expect } from 'vitest'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'
import { brief, generous, given, patient, shy, three } from './legacy-agents.ts'
import { all, early, ID, message, rpc, TIME, type Wire } from './legacy-wire.ts'

describe('A2A 0.1 over JSON-RPC', () => {
  verifies(['a2a-0.1.send', 'a2a-0.1.parts'], 'tasks/send', async () => {
    const { url } = await startServer(three)
    const params = { id: 'mine', sessionId: 's', message: early('go'), historyLength: 5, metadata: { r: 1 } }
    expect(await rpc(url).call('tasks/send', params)).toEqual({
      result: {
        id: 'mine',
        sessionId: 's',
        status: { state: 'completed', timestamp: TIME },
        artifacts: [{ parts: [{ type: 'text', text: 'a "b" c' }], index: 0 }],
        history: [early('go')],
        metadata: { r: 1 },
      },
    })
  })

  verifies('a2a-0.1.send', 'tasks/send without an id or a session gets both', async () => {
    const { url } = await startServer([three, brief])
    expect(await rpc(`${url}/agents/three`).call('tasks/send', { message: early('go') })).toMatchObject({
      result: { id: ID, sessionId: ID },
    })
    expect(await rpc(`${url}/agents/brief`).call('tasks/send', { id: 'mine', message: early('hi') })).toEqual({
      result: {
        id: 'mine',
        sessionId: ID,
        status: { state: 'completed', timestamp: TIME, message: { role: 'agent', parts: [{ type: 'text', text: 'Hi.' }] } },
      },
    })
  })

  verifies('a2a-0.1.parts', 'parts of every type, in and out', async () => {
    const { url } = await startServer([given, generous])
    const parts = [
      { type: 'text', text: 'look' },
      { type: 'file', file: { bytes: 'AAEC', mimeType: 'image/png', name: 'a.png' } },
      { type: 'file', file: { uri: 'https://a.example/b.csv', mimeType: 'text/csv' } },
      { type: 'data', data: { n: 1 }, metadata: { m: true } },
    ]
    const params = { id: 'a', message: { role: 'user', parts }, historyLength: 1 }
    const { result } = await rpc(`${url}/agents/given`).call('tasks/send', params)
    expect(JSON.parse(result.artifacts[0].parts[0].text).items.map(({ type }: Wire) => type)).toEqual(['text', 'image', 'file', 'file'])
    expect(result.history[0].parts).toEqual(parts)
    const { result: out } = await rpc(`${url}/agents/generous`).call('tasks/send', { id: 'b', message: early('go') })
    expect(out.artifacts).toMatchObject([
      { index: 0, parts: [{ type: 'text', text: 'Look:' }] },
      { index: 1, parts: [{ type: 'file', file: { bytes: 'AAEC', mimeType: 'image/png' } }] },
      { index: 2, name: 'n.json', parts: [{ type: 'data', data: { n: 1 } }] },
    ])
  })

  verifies(['a2a-0.1.stream', 'a2a-0.1.artifact-index'], 'tasks/sendSubscribe', async () => {
    const { url } = await startServer(three)
    const chunk = (text: string, more: object): object => ({ id: 'mine', artifact: { parts: [{ type: 'text', text }], index: 0, ...more } })
    expect(await all(rpc(url).stream('tasks/sendSubscribe', { id: 'mine', sessionId: 's', message: early('go') }))).toEqual([
      { id: 'mine', status: { state: 'submitted', timestamp: TIME }, final: false },
      { id: 'mine', status: { state: 'working', timestamp: TIME }, final: false },
      chunk('a ', { append: false }),
      chunk('"b" ', { append: true }),
      chunk('c', { append: true }),
      chunk('', { append: true, lastChunk: true }),
      { id: 'mine', status: { state: 'completed', timestamp: TIME }, final: true },
    ])
  })

  verifies('a2a-0.1.stream', 'tasks/sendSubscribe may end with a message', async () => {
    const { url } = await startServer(brief)
    expect(await all(rpc(url).stream('tasks/sendSubscribe', { id: 'mine', message: early('go') }))).toEqual([
      { id: 'mine', status: { state: 'completed', message: { role: 'agent', parts: [{ type: 'text', text: 'Hi.' }] } }, final: true },
    ])
  })

  verifies('a2a-0.1.continue', 'tasks/send with the id of a task that waits', async () => {
    const { url } = await startServer(shy)
    const api = rpc(url)
    expect(await api.call('tasks/send', { id: 'mine', message: early('do it') })).toMatchObject({
      result: {
        status: {
          state: 'input-required',
          message: {
            role: 'agent',
            parts: [
              { type: 'text', text: 'May I?' },
              { type: 'data', data: { type: 'x.approval.request' } },
            ],
          },
        },
      },
    })
    expect(await api.call('tasks/send', { id: 'mine', message: early('yes') })).toMatchObject({
      result: { id: 'mine', status: { state: 'completed' }, artifacts: [{ parts: [{ type: 'text', text: 'I did' }] }] },
    })
    expect(await api.call('tasks/send', { id: 'mine', message: early('again') })).toMatchObject({ error: { code: -32004 } })
  })

  verifies('a2a-0.1.session', 'tasks of one session know what was said before', async () => {
    const { url } = await startServer(given)
    const api = rpc(url)
    await api.call('tasks/send', { id: 'one', sessionId: 's', message: early('first') })
    const { result } = await api.call('tasks/send', { id: 'two', sessionId: 's', message: early('second') })
    const { texts } = JSON.parse(result.artifacts[0].parts[0].text)
    expect([texts[0], texts.at(-1)]).toEqual(['first', 'second'])
  })

  verifies(
    ['a2a-0.1.get', 'a2a-0.1.cancel', 'a2a-0.1.resubscribe'],
    'tasks/get, tasks/resubscribe and tasks/cancel of a task of 0.1',
    async () => {
      const { url } = await startServer(patient)
      const api = rpc(url)
      const first = api.stream('tasks/sendSubscribe', { id: 'mine', sessionId: 's', message: early('go') })
      for await (const { artifact } of first) if (artifact) break
      expect((await api.call('tasks/get', { id: 'mine' })).result).toEqual({
        id: 'mine',
        sessionId: 's',
        status: { state: 'working', timestamp: TIME },
        artifacts: [{ parts: [{ type: 'text', text: 'working' }], index: 0 }],
      })
      expect((await api.call('tasks/get', { id: 'mine', historyLength: 1 })).result.history).toEqual([early('go')])
      const second = api.stream('tasks/resubscribe', { id: 'mine' })
      expect([(await second.next()).value, (await second.next()).value]).toEqual([
        { id: 'mine', status: { state: 'working', timestamp: TIME }, final: false },
        { id: 'mine', artifact: { parts: [{ type: 'text', text: 'working' }], index: 0, append: false } },
      ])
      expect((await api.call('tasks/cancel', { id: 'mine' })).result).toMatchObject({
        id: 'mine',
        sessionId: 's',
        status: { state: 'canceled' },
      })
      expect((await all(second)).at(-1)).toMatchObject({ id: 'mine', status: { state: 'canceled' }, final: true })
      expect((await all(api.stream('tasks/resubscribe', { id: 'mine' }))).at(-1)).toMatchObject({
        status: { state: 'canceled' },
        final: true,
      })
      expect(await api.call('tasks/cancel', { id: 'mine' })).toMatchObject({ error: { code: -32002 } })
    },
  )

  verifies('a2a-0.1.get', 'a task of another generation is shown as that one has it', async () => {
    const { url } = await startServer(three)
    const api = rpc(url)
    const { result } = await api.call('message/send', { message: message('go') })
    expect((await api.call('tasks/get', { id: result.id })).result).toMatchObject({ kind: 'task', contextId: result.contextId })
  })

  verifies('a2a-0.1.push', 'tasks/pushNotification/set and get', async () => {
    const { url } = await startServer(shy)
    const api = rpc(url)
    await api.call('tasks/send', { id: 'mine', message: early('do it') })
    const whole = (at: string): object => ({
      id: 'mine',
      pushNotificationConfig: { url: at, token: 't', authentication: { schemes: ['Bearer'], credentials: 's' } },
    })
    await api.call('tasks/pushNotification/set', whole('https://a.example/old'))
    const set = await api.call('tasks/pushNotification/set', whole('https://a.example/new'))
    expect(set).toEqual({ result: whole('https://a.example/new') })
    expect(await api.call('tasks/pushNotification/get', { id: 'mine' })).toEqual(set)
  })

  const rows: readonly (readonly [name: string, method: string, params: unknown, code: number, field?: string])[] = [
    ['no parameters', 'tasks/send', undefined, -32602],
    ['no message', 'tasks/send', { id: 'x' }, -32602, 'message'],
    ['no parts', 'tasks/send', { id: 'x', message: { role: 'user', parts: [] } }, -32602, 'message.parts'],
    ['an unknown role', 'tasks/sendSubscribe', { id: 'x', message: { ...early('x'), role: 'system' } }, -32602, 'message.role'],
    [
      'a part of unknown type',
      'tasks/send',
      { id: 'x', message: { role: 'user', parts: [{ type: 'x' }] } },
      -32602,
      'message.parts[0].kind',
    ],
    [
      'data that is a text',
      'tasks/send',
      { id: 'x', message: { role: 'user', parts: [{ type: 'data', data: 'x' }] } },
      -32602,
      'message.parts[0]',
    ],
    ['an empty id', 'tasks/send', { id: '', message: early('x') }, -32602, 'id'],
    ['no task to get', 'tasks/get', { id: 'nope' }, -32001],
    ['no task for a webhook', 'tasks/pushNotification/get', { id: 'nope' }, -32001],
    [
      'a webhook without a url',
      'tasks/pushNotification/set',
      { id: 'nope', pushNotificationConfig: {} },
      -32602,
      'pushNotificationConfig.url',
    ],
    ['an unknown method', 'tasks/pushNotification/list', { id: 'nope' }, -32601],
  ]
  for (const [name, method, params, code, field] of rows) {
    verifies('a2a-0.1.errors', `${name} is told`, async () => {
      const { url } = await startServer(three)
      const { error } = await rpc(url).call(method, params)
      expect(error).toMatchObject({ code, message: expect.stringMatching(/\w/) })
      if (code !== -32601) expect(error.data.field).toBe(field)
    })
  }
})
