import { describe, expect } from 'vitest'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'
import { given, shy, three } from './legacy-agents.ts'
import { all, ask, newId, rpc } from './legacy-wire.ts'

describe('A2A 0.2', () => {
  verifies('a2a-0.2.send', 'message/send and message/stream; `type` is taken for `kind`', async () => {
    const { url } = await startServer(given)
    const parts = [
      { type: 'text', text: 'look' },
      { type: 'file', file: { name: 'a.csv', mimeType: 'text/csv', bytes: 'AAEC' } },
      { type: 'data', data: { n: 1 } },
    ]
    const message = { type: 'message', messageId: newId(), role: 'user', parts }
    const { result } = await rpc(url).call('message/send', { message })
    expect(result).toMatchObject({ kind: 'task', status: { state: 'completed' } })
    expect(result.history[0].parts).toEqual(parts.map(({ type, ...rest }) => ({ kind: type, ...rest })))
    const events = await all(rpc(url).stream('message/stream', { message: { ...message, messageId: newId() } }))
    expect(events.map(({ kind }) => kind)).toEqual(['task', 'status-update', 'artifact-update', 'artifact-update', 'status-update'])
    expect(events.at(-1)).toMatchObject({ final: true })
  })

  verifies('a2a-0.2.push', 'a config without an id is the only one', async () => {
    const { url } = await startServer(shy)
    const api = rpc(url)
    const { result: task } = await api.call('message/send', {
      message: { messageId: newId(), role: 'user', parts: [{ kind: 'text', text: 'x' }] },
    })
    const set = (at: string) => api.call('tasks/pushNotificationConfig/set', { taskId: task.id, pushNotificationConfig: { url: at } })
    await set('https://a.example/old')
    expect(await set('https://a.example/new')).toEqual({
      result: { taskId: task.id, pushNotificationConfig: { id: task.id, url: 'https://a.example/new' } },
    })
    expect(await api.call('tasks/pushNotificationConfig/get', { id: task.id })).toMatchObject({
      result: { taskId: task.id, pushNotificationConfig: { url: 'https://a.example/new' } },
    })
    expect((await api.call('tasks/pushNotificationConfig/list', { id: task.id })).result).toHaveLength(1)
  })

  verifies('a2a-0.2.extended-card', 'GET agent/authenticatedExtendedCard', async () => {
    const { url } = await startServer(three, {
      tokens: { me: 'secret-0123456789abcdef' },
      a2a: { extendedCard: { description: 'For you alone' } },
    })
    const { body: card } = await ask(`${url}/.well-known/agent.json`)
    const at = new URL('agent/authenticatedExtendedCard', card.url).href
    expect(await ask(at)).toMatchObject({ status: 401 })
    expect(await ask(at, { headers: { authorization: 'Bearer secret-0123456789abcdef' } })).toMatchObject({
      status: 200,
      body: { name: 'three', description: 'For you alone', url: card.url },
    })
  })
})
