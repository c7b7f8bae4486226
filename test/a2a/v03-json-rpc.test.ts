import { describe, expect } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'
import { brief, generous, given, patient, shy, three } from './legacy-agents.ts'
import { all, ID, message, newId, rpc, TIME, type Wire } from './legacy-wire.ts'

describe('A2A 0.3 over JSON-RPC', () => {
  verifies('a2a-0.3.send', 'message/send answers with a task', async () => {
    const { url } = await startServer(three)
    const sent = message('go', { metadata: { a: 1 } })
    expect(await rpc(url).call('message/send', { message: sent, metadata: { r: 1 } })).toEqual({
      result: {
        kind: 'task',
        id: ID,
        contextId: ID,
        status: { state: 'completed', timestamp: TIME },
        artifacts: [{ artifactId: ID, parts: [{ kind: 'text', text: 'a "b" c' }] }],
        history: [{ ...sent, taskId: ID, contextId: ID }],
        metadata: { r: 1 },
      },
    })
  })

  verifies('a2a-0.3.send', 'message/send answers with a message, if that is all', async () => {
    const { url } = await startServer(brief)
    expect(await rpc(url).call('message/send', { message: message('hi', { contextId: 'c' }) })).toEqual({
      result: { kind: 'message', messageId: ID, role: 'agent', contextId: 'c', parts: [{ kind: 'text', text: 'Hi.' }] },
    })
  })

  verifies(
    ['a2a-0.3.blocking', 'a2a-0.3.get', 'a2a-0.3.cancel'],
    'who does not block gets a task that works, and may look at it and stop it',
    async () => {
      const { url } = await startServer(patient)
      const api = rpc(url)
      const { result: task } = await api.call('message/send', { message: message('go'), configuration: { blocking: false } })
      expect(task).toMatchObject({ kind: 'task', status: { state: 'working' } })
      const { result: seen } = await api.call('tasks/get', { id: task.id })
      expect(seen).toMatchObject({ kind: 'task', id: task.id, contextId: task.contextId, status: { state: 'working' } })
      const { result: cancelled } = await api.call('tasks/cancel', { id: task.id, metadata: { why: 'enough' } })
      expect(cancelled).toMatchObject({ kind: 'task', id: task.id, status: { state: 'canceled', timestamp: TIME } })
      expect(await api.call('tasks/cancel', { id: task.id })).toMatchObject({
        error: { code: -32002, message: expect.stringContaining('has ended'), data: { reason: 'TASK_NOT_CANCELABLE' } },
      })
    },
  )

  verifies(['a2a-0.3.stream', 'a2a-0.3.final', 'a2a-0.3.artifact-chunks'], 'message/stream', async () => {
    const { url } = await startServer(three)
    const [task, ...events] = await all(rpc(url).stream('message/stream', { message: message('go') }))
    const place = { taskId: task.id, contextId: task.contextId }
    const chunk = (text: string, more: object): Wire => ({
      kind: 'artifact-update',
      ...place,
      artifact: { artifactId: events[1].artifact.artifactId, parts: [{ kind: 'text', text }] },
      ...more,
    })
    expect(task).toMatchObject({ kind: 'task', status: { state: 'submitted' }, history: [{ kind: 'message', role: 'user' }] })
    expect(events).toEqual([
      { kind: 'status-update', ...place, status: { state: 'working', timestamp: TIME }, final: false },
      chunk('a ', { append: false }),
      chunk('"b" ', { append: true }),
      chunk('c', { append: true }),
      chunk('', { append: true, lastChunk: true }),
      { kind: 'status-update', ...place, status: { state: 'completed', timestamp: TIME }, final: true },
    ])
  })

  verifies(['a2a-0.3.parts'], 'parts of every kind go in', async () => {
    const { url } = await startServer(given)
    const parts = [
      { kind: 'text', text: 'look' },
      { kind: 'file', file: { bytes: 'AAEC', mimeType: 'image/png', name: 'dot.png' } },
      { kind: 'file', file: { uri: 'https://a.example/b.csv', mimeType: 'text/csv', name: 'b.csv' }, metadata: { big: false } },
      { kind: 'data', data: { n: 1 } },
    ]
    const { result: task } = await rpc(url).call('message/send', { message: { messageId: newId(), role: 'user', parts } })
    expect(JSON.parse(task.artifacts[0].parts[0].text).items).toMatchObject([
      { type: 'text', text: 'look' },
      { type: 'image', image: 'AAEC', format: 'png' },
      { type: 'file', file: { url: 'https://a.example/b.csv' }, filename: 'b.csv', mime_type: 'text/csv' },
      { type: 'file', file: btoa('{"n":1}'), mime_type: 'application/json' },
    ])
    expect(task.history[0].parts).toEqual(parts)
  })

  verifies(['a2a-0.3.parts'], 'and come out', async () => {
    const { url } = await startServer(generous)
    const { result: task } = await rpc(url).call('message/send', { message: message('go') })
    expect(task.artifacts).toEqual([
      { artifactId: ID, parts: [{ kind: 'text', text: 'Look:' }] },
      { artifactId: 'dot', description: 'A dot', parts: [{ kind: 'file', file: { bytes: 'AAEC', mimeType: 'image/png' } }] },
      {
        artifactId: 'n',
        name: 'n.json',
        parts: [{ kind: 'data', data: { n: 1 }, metadata: { uamp: { filename: 'n.json', mediaType: 'application/json' } } }],
      },
    ])
  })

  verifies(['a2a-0.3.continue', 'a2a-0.3.final', 'a2a-0.3.terminal'], 'a task that asks goes on with the answer', async () => {
    const { url } = await startServer(shy)
    const api = rpc(url)
    const events = await all(api.stream('message/stream', { message: message('do it') }))
    const { taskId, contextId } = events.at(-1)
    expect(events.at(-1)).toMatchObject({
      kind: 'status-update',
      status: {
        state: 'input-required',
        message: {
          kind: 'message',
          role: 'agent',
          parts: [
            { kind: 'text', text: 'May I?' },
            { kind: 'data', data: { type: 'x.approval.request' } },
          ],
        },
      },
      final: true,
    })
    const { result: task } = await api.call('message/send', { message: message('yes', { taskId, contextId }) })
    expect(task).toMatchObject({ id: taskId, status: { state: 'completed' }, artifacts: [{ parts: [{ text: 'I did' }] }] })
    expect(task.history.map(({ role }: Wire) => role)).toEqual(['user', 'agent', 'user'])
    expect(await api.call('message/send', { message: message('more', { taskId }) })).toMatchObject({ error: { code: -32004 } })
  })

  verifies('a2a-0.3.history-length', 'tasks/get with a length of history', async () => {
    const { url } = await startServer(shy)
    const api = rpc(url)
    const { result: asked } = await api.call('message/send', { message: message('do it') })
    await api.call('message/send', { message: message('no', { taskId: asked.id }) })
    const lengths = [undefined, null, 2, 0].map(async (historyLength) => {
      const { result } = await api.call('tasks/get', { id: asked.id, historyLength })
      return result.history?.length ?? 0
    })
    expect(await Promise.all(lengths)).toEqual([3, 3, 2, 0])
  })

  verifies('a2a-0.3.resubscribe', 'tasks/resubscribe', async () => {
    const { url } = await startServer(patient)
    const api = rpc(url)
    const first = api.stream('message/stream', { message: message('go') })
    const { value: task } = await first.next()
    for await (const { kind } of first) if (kind === 'artifact-update') break
    const second = api.stream('tasks/resubscribe', { id: task.id })
    const { value: now } = await second.next()
    expect(now).toMatchObject({ kind: 'task', id: task.id, status: { state: 'working' }, artifacts: [{ parts: [{ text: 'working' }] }] })
    await api.call('tasks/cancel', { id: task.id })
    const rest = await all(second)
    expect(rest.at(-1)).toMatchObject({ kind: 'status-update', status: { state: 'canceled' }, final: true })
    expect(await all(api.stream('tasks/resubscribe', { id: task.id }))).toMatchObject([
      { kind: 'task', id: task.id, status: { state: 'canceled' }, artifacts: [{ parts: [{ kind: 'text', text: 'working' }] }] },
    ])
  })

  verifies('a2a-0.3.push', 'tasks/pushNotificationConfig/set, get, list and delete', async () => {
    const { url } = await startServer(shy)
    const api = rpc(url)
    const { result: task } = await api.call('message/send', { message: message('go') })
    const config = { id: 'c', url: 'https://a.example/hook', token: 't', authentication: { schemes: ['Bearer'], credentials: 's' } }
    const whole = { taskId: task.id, pushNotificationConfig: config }
    expect(await api.call('tasks/pushNotificationConfig/set', whole)).toEqual({ result: whole })
    expect(await api.call('tasks/pushNotificationConfig/get', { id: task.id, pushNotificationConfigId: 'c' })).toEqual({ result: whole })
    expect(await api.call('tasks/pushNotificationConfig/get', { id: task.id })).toEqual({ result: whole })
    expect(await api.call('tasks/pushNotificationConfig/list', { id: task.id })).toEqual({ result: [whole] })
    expect(await api.call('tasks/pushNotificationConfig/delete', { id: task.id, pushNotificationConfigId: 'c' })).toEqual({ result: null })
    expect(await api.call('tasks/pushNotificationConfig/list', { id: task.id })).toEqual({ result: [] })
    expect(await api.call('tasks/pushNotificationConfig/get', { id: task.id })).toMatchObject({ error: { code: -32001 } })
  })

  verifies('a2a-0.3.extended-card', 'agent/getAuthenticatedExtendedCard', async () => {
    const { url } = await startServer(three)
    expect(await rpc(url).call('agent/getAuthenticatedExtendedCard')).toMatchObject({ error: { code: -32007 } })
    const other = await startServer(three, {
      tokens: { me: 'secret-0123456789abcdef' },
      a2a: { extendedCard: { description: 'For you alone' } },
    })
    expect(await rpc(other.url, 'secret-0123456789abcdef').call('agent/getAuthenticatedExtendedCard')).toMatchObject({
      result: { name: 'three', description: 'For you alone', protocolVersion: '0.3.0', url: `${other.url}/a2a` },
    })
  })

  verifies(['a2a-0.3.get', 'a2a-1.0.get'], 'a task of one generation is the same task in another', async () => {
    const { url } = await startServer(three)
    const api = rpc(url)
    const { result: old } = await api.call('message/send', { message: message('go') })
    expect((await api.call('GetTask', { id: old.id })).result).toMatchObject({
      id: old.id,
      status: { state: 'TASK_STATE_COMPLETED' },
      artifacts: [{ parts: [{ text: 'a "b" c' }] }],
      history: [{ role: 'ROLE_USER', parts: [{ text: 'go' }] }],
    })
    const sent = { messageId: newId(), role: 'ROLE_USER', parts: [{ text: 'go', mediaType: 'text/markdown' }] }
    const { result } = await api.call('SendMessage', { message: sent })
    expect((await api.call('tasks/get', { id: result.task.id })).result).toMatchObject({
      kind: 'task',
      status: { state: 'completed' },
      history: [{ kind: 'message', parts: [{ kind: 'text', text: 'go', metadata: { uamp: { mediaType: 'text/markdown' } } }] }],
    })
  })

  verifies('a2a-0.3.stream', 'an extension is asked for by the header of its time', async () => {
    const { url } = await startServer(demo())
    const params = { message: message('/think hard') }
    const events = await all(rpc(url).stream('message/stream', params, { 'x-a2a-extensions': 'https://uamp.dev/a2a/events/v1' }))
    const thoughts = events.flatMap(({ kind, status }) => (kind === 'status-update' && status.message ? status.message.parts : []))
    expect(thoughts[0]).toMatchObject({ kind: 'data', data: { type: 'thinking' } })
    const plain = await all(rpc(url).stream('message/stream', { message: message('/think hard') }))
    expect(plain.some(({ status }) => status?.message)).toBe(false)
  })

  verifies('a2a-0.3.owner', "somebody else's task is not there", async () => {
    const { url } = await startServer(shy, { tokens: { one: 'one-0123456789abcdef', two: 'two-0123456789abcdef' } })
    const { result: task } = await rpc(url, 'one-0123456789abcdef').call('message/send', { message: message('go') })
    const other = rpc(url, 'two-0123456789abcdef')
    const calls = [
      other.call('tasks/get', { id: task.id }),
      other.call('tasks/cancel', { id: task.id }),
      other.call('tasks/resubscribe', { id: task.id }),
      other.call('message/send', { message: message('yes', { taskId: task.id }) }),
      other.call('tasks/pushNotificationConfig/list', { id: task.id }),
      other.call('tasks/pushNotificationConfig/set', { taskId: task.id, pushNotificationConfig: { url: 'https://a.example' } }),
      other.call('tasks/pushNotificationConfig/get', { id: task.id }),
      other.call('tasks/pushNotificationConfig/delete', { id: task.id, pushNotificationConfigId: 'c' }),
    ]
    for (const answer of await Promise.all(calls)) expect(answer).toMatchObject({ error: { code: -32001 } })
  })
})
