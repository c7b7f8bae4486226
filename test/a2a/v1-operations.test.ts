import { describe, expect } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'
import { gate, halfway, recall } from './v1-agents.ts'
import { all, BINDINGS, kindsOf, textOf, user, type Api, type Wire } from './v1-wire.ts'

const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/
const ANY = expect.any(String) as string

describe.each(BINDINGS)('A2A 1.0 over %s', (_, binding) => {
  const start = async (agent = demo()): Promise<Api> => binding((await startServer(agent)).url)

  verifies(
    ['a2a-1.0.send', 'a2a-1.0.blocking', 'a2a-1.0.context-new', 'a2a-1.0.timestamps', 'a2a-1.0.equivalent'],
    'SendMessage waits for the end and answers with the task (§3.1.1, §3.2.2)',
    async () => {
      const api = await start()
      const message = user('hi\n"there" \u{1F40E}')
      const { status, result } = await api.call('SendMessage', { message })
      expect(status).toBe(200)
      expect(result).toEqual({
        task: {
          id: ANY,
          contextId: ANY,
          status: { state: 'TASK_STATE_COMPLETED', timestamp: expect.stringMatching(ISO) },
          artifacts: [{ artifactId: ANY, parts: [{ text: 'You said: hi\n"there" \u{1F40E}' }] }],
          history: [{ ...message, taskId: result.task.id, contextId: result.task.contextId }],
        },
      })
    },
  )

  verifies('a2a-1.0.return-immediately', 'returnImmediately answers while the task runs (§3.2.2)', async () => {
    const { opened, open } = gate()
    const api = await start(halfway(opened))
    const { result } = await api.call('SendMessage', { message: user('go'), configuration: { returnImmediately: true } })
    expect(['TASK_STATE_SUBMITTED', 'TASK_STATE_WORKING']).toContain(result.task.status.state)
    const stream = api.stream('SubscribeToTask', { id: result.task.id })
    expect((await stream.next()).value?.event.task.id).toBe(result.task.id)
    open()
    expect((await all(stream)).at(-1).statusUpdate.status.state).toBe('TASK_STATE_COMPLETED')
  })

  verifies(
    ['a2a-1.0.stream-order', 'a2a-1.0.artifact-chunks', 'a2a-1.0.stream-rpc', 'a2a-1.0.rest-stream'],
    'SendStreamingMessage: the task, its updates in order, the end (§3.1.2, §4.2.2)',
    async () => {
      const api = await start()
      const events = await all(api.stream('SendStreamingMessage', { message: user('/count 50') }))
      const [{ task }] = events
      expect(kindsOf(events)).toEqual(['task', 'TASK_STATE_WORKING', 'artifactUpdate', 'TASK_STATE_COMPLETED'])
      const chunks = events.flatMap(({ artifactUpdate }) => artifactUpdate ?? [])
      expect(new Set(chunks.map(({ artifact }) => artifact.artifactId)).size).toBe(1)
      expect(chunks.map(({ append }) => append ?? false)).toEqual(chunks.map((__, index) => index > 0))
      expect(chunks.map(({ lastChunk }) => lastChunk ?? false)).toEqual(chunks.map((__, index) => index === chunks.length - 1))
      expect(chunks.every(({ taskId, contextId }) => taskId === task.id && contextId === task.contextId)).toBe(true)
      expect(textOf(events)).toBe(Array.from({ length: 50 }, (__, index) => index + 1).join(' '))
      // What was streamed and what is there afterwards are one.
      const { result } = await api.call('GetTask', { id: task.id })
      expect(result.artifacts).toEqual([{ artifactId: chunks[0].artifact.artifactId, parts: [{ text: textOf(events) }] }])
    },
  )

  verifies(['a2a-1.0.get', 'a2a-1.0.history-length'], 'GetTask with as much history as is asked for (§3.1.3, §3.2.4)', async () => {
    const api = await start()
    const message = user('hi')
    const sent = await api.call('SendMessage', { message, configuration: { historyLength: 0 } })
    expect(sent.result.task).not.toHaveProperty('history')
    const { id } = sent.result.task
    expect((await api.call('GetTask', { id })).result).toMatchObject({ id, history: [{ messageId: message.messageId }] })
    expect((await api.call('GetTask', { id, historyLength: 0 })).result).not.toHaveProperty('history')
    expect((await api.call('GetTask', { id, historyLength: 1 })).result.history).toHaveLength(1)
  })

  verifies(
    ['a2a-1.0.list-order', 'a2a-1.0.list-paging', 'a2a-1.0.list-artifacts'],
    'ListTasks: the newest first, page by page, artifacts if asked for (§3.1.4)',
    async () => {
      const api = await start()
      const ids: string[] = []
      for (let n = 0; n < 5; n++) ids.unshift((await api.call('SendMessage', { message: user(`${n}`) })).result.task.id)
      const seen: string[] = []
      let pageToken = ''
      do {
        const { result } = await api.call('ListTasks', { pageSize: 2, ...(pageToken !== '' && { pageToken }) })
        expect(result).toEqual({ tasks: expect.any(Array), nextPageToken: ANY, pageSize: 2, totalSize: 5 })
        for (const task of result.tasks) expect(task).not.toHaveProperty('artifacts')
        const times: number[] = result.tasks.map((task: Wire) => Date.parse(task.status.timestamp))
        expect(times).toEqual([...times].sort((a, b) => b - a))
        seen.push(...result.tasks.map((task: Wire) => task.id))
        pageToken = result.nextPageToken
      } while (pageToken !== '')
      expect(new Set(seen)).toEqual(new Set(ids))
      expect(seen).toHaveLength(ids.length)
      const { result } = await api.call('ListTasks', { includeArtifacts: true, historyLength: 0 })
      expect(result.pageSize).toBe(50)
      expect(result.tasks[0].artifacts).toHaveLength(1)
      expect(result.tasks[0]).not.toHaveProperty('history')
    },
  )

  verifies('a2a-1.0.list-filters', 'ListTasks by context, state and time (§3.1.4)', async () => {
    const { opened, open } = gate()
    const api = await start(halfway(opened))
    const running = await api.call('SendMessage', { message: user('a', { contextId: 'c1' }), configuration: { returnImmediately: true } })
    const other = await api.call('SendMessage', { message: user('b', { contextId: 'c2' }), configuration: { returnImmediately: true } })
    const idsOf = async (params: object) => (await api.call('ListTasks', params)).result.tasks.map((task: Wire) => task.id)
    expect(await idsOf({ contextId: 'c1' })).toEqual([running.result.task.id])
    expect(await idsOf({ contextId: 'c3' })).toEqual([])
    await api.call('CancelTask', { id: other.result.task.id })
    expect(await idsOf({ status: 'TASK_STATE_CANCELED' })).toEqual([other.result.task.id])
    expect(await idsOf({ status: 'TASK_STATE_CANCELED', contextId: 'c1' })).toEqual([])
    expect(await idsOf({ statusTimestampAfter: '2999-01-01T00:00:00Z' })).toEqual([])
    expect(await idsOf({ statusTimestampAfter: '2020-01-01T00:00:00.000Z' })).toHaveLength(2)
    open()
  })

  verifies(['a2a-1.0.cancel', 'a2a-1.0.not-cancelable'], 'CancelTask ends it, once (§3.1.5)', async () => {
    const { opened } = gate()
    const api = await start(halfway(opened))
    const { result } = await api.call('SendMessage', { message: user('go'), configuration: { returnImmediately: true } })
    const { id } = result.task
    expect((await api.call('CancelTask', { id, metadata: { why: 'enough' } })).result).toMatchObject({
      id,
      status: { state: 'TASK_STATE_CANCELED', timestamp: expect.stringMatching(ISO) },
    })
    expect((await api.call('CancelTask', { id })).error).toMatchObject({ reason: 'TASK_NOT_CANCELABLE' })
  })

  verifies(['a2a-1.0.subscribe', 'a2a-1.0.streams'], 'every stream of a task gets the same, and may leave (§3.1.6, §3.5.2)', async () => {
    const { opened, open } = gate()
    const api = await start(halfway(opened))
    const first = api.stream('SendStreamingMessage', { message: user('go') })
    const { task } = (await first.next()).value?.event ?? {}
    const [one, two, leaving] = ['a', 'b', 'c'].map(() => api.stream('SubscribeToTask', { id: task.id }))
    const begun = await Promise.all([one?.next(), two?.next(), leaving?.next()])
    for (const step of begun) expect(step?.value?.event.task).toMatchObject({ id: task.id, status: { state: 'TASK_STATE_WORKING' } })
    await leaving?.return()
    await first.return()
    open()
    const [rest1, rest2] = await Promise.all([all(one as AsyncIterable<never>), all(two as AsyncIterable<never>)])
    expect(rest1).toEqual(rest2)
    expect(kindsOf(rest1).at(-1)).toBe('TASK_STATE_COMPLETED')
    const said = begun[0]?.value?.event.task.artifacts?.[0]?.parts[0].text ?? ''
    expect(said + textOf(rest1)).toBe('one two')
  })

  verifies('a2a-1.0.subscribe-terminal', 'SubscribeToTask of a task that has ended (§3.1.6)', async () => {
    const api = await start()
    const { result } = await api.call('SendMessage', { message: user('hi') })
    await expect(all(api.stream('SubscribeToTask', { id: result.task.id }))).rejects.toMatchObject({ reason: 'UNSUPPORTED_OPERATION' })
  })

  verifies('a2a-1.0.subscribe', 'Last-Event-ID goes on where a stream was left', async () => {
    const { opened, open } = gate()
    const api = await start(halfway(opened))
    const stream = api.stream('SendStreamingMessage', { message: user('go') })
    let last: string | undefined
    let id = ''
    for await (const told of stream) {
      last = told.id ?? last
      if (told.event.task) id = told.event.task.id
      if (told.event.artifactUpdate) break
    }
    expect(last).toBeDefined()
    const rest = all(api.stream('SubscribeToTask', { id }, { 'last-event-id': last ?? '' }))
    open()
    expect(textOf(await rest)).toBe(' two')
  })

  verifies(['a2a-1.0.context-kept', 'a2a-1.0.context-mismatch'], 'tasks of a context share its conversation (§3.4)', async () => {
    const api = await start(recall())
    const one = await api.call('SendMessage', { message: user('a', { contextId: 'my-context' }) })
    expect(one.result.task.contextId).toBe('my-context')
    const two = await api.call('SendMessage', { message: user('b', { contextId: 'my-context' }) })
    expect(two.result.task.id).not.toBe(one.result.task.id)
    expect(two.result.task.artifacts[0].parts[0].text).toBe('user:a|assistant:user:a|user:b')
    const wrong = await api.call('SendMessage', { message: user('c', { contextId: 'another', taskId: one.result.task.id }) })
    expect(wrong.error).toMatchObject({ reason: 'INVALID_PARAMS' })
  })

  verifies('a2a-1.0.input-required', 'a question comes back on the same task (§3.4.3)', async () => {
    const api = await start()
    const asked = await api.call('SendMessage', { message: user('/approve Delete it all') })
    const { id, contextId, status } = asked.result.task
    expect(status).toMatchObject({ state: 'TASK_STATE_INPUT_REQUIRED', message: { role: 'ROLE_AGENT', taskId: id, contextId } })
    const answered = await api.call('SendMessage', { message: user('yes', { taskId: id }) })
    expect(answered.result.task).toMatchObject({ id, contextId, status: { state: 'TASK_STATE_COMPLETED' } })
    expect(answered.result.task.artifacts.at(-1).parts[0].text).toContain('Approved: Delete it all')
    const late = await api.call('SendMessage', { message: user('again', { taskId: id }) })
    expect(late.error).toMatchObject({ reason: 'UNSUPPORTED_OPERATION' })
  })

  verifies('a2a-1.0.terminal-message', 'a message to a task that has ended (§3.1.1)', async () => {
    const api = await start()
    const { result } = await api.call('SendMessage', { message: user('hi') })
    const params = { message: user('more', { taskId: result.task.id }) }
    expect((await api.call('SendMessage', params)).error).toMatchObject({ reason: 'UNSUPPORTED_OPERATION' })
    await expect(all(api.stream('SendStreamingMessage', params))).rejects.toMatchObject({ reason: 'UNSUPPORTED_OPERATION' })
  })

  verifies('a2a-1.0.push', 'push notification configs (§3.1.7 to §3.1.10)', async () => {
    const { opened, open } = gate()
    const api = await start(halfway(opened))
    const { result } = await api.call('SendMessage', { message: user('go'), configuration: { returnImmediately: true } })
    const taskId = result.task.id
    const wanted = { taskId, url: 'https://hooks.example.com/a', token: 't', authentication: { scheme: 'Bearer', credentials: 'c' } }
    const created = (await api.call('CreateTaskPushNotificationConfig', wanted)).result
    expect(created).toMatchObject({ id: ANY, taskId, url: wanted.url })
    const named = (await api.call('CreateTaskPushNotificationConfig', { taskId, id: 'mine', url: 'https://hooks.example.com/b' })).result
    expect(named).toMatchObject({ id: 'mine', taskId })
    expect((await api.call('GetTaskPushNotificationConfig', { taskId, id: created.id })).result).toEqual(created)
    const listed = (await api.call('ListTaskPushNotificationConfigs', { taskId })).result
    expect(new Set(listed.configs.map(({ id }: Wire) => id))).toEqual(new Set([created.id, 'mine']))
    for (const id of ['mine', 'mine'])
      expect(await api.call('DeleteTaskPushNotificationConfig', { taskId, id })).toMatchObject({ status: 200, result: {} })
    expect((await api.call('GetTaskPushNotificationConfig', { taskId, id: 'mine' })).error).toMatchObject({ reason: 'TASK_NOT_FOUND' })
    open()
  })

  const named = [
    ['GetTask', { id: 'nowhere' }],
    ['CancelTask', { id: 'nowhere' }],
    ['SubscribeToTask', { id: 'nowhere' }],
    ['CreateTaskPushNotificationConfig', { taskId: 'nowhere', url: 'https://hooks.example.com/a' }],
    ['GetTaskPushNotificationConfig', { taskId: 'nowhere', id: 'a' }],
    ['ListTaskPushNotificationConfigs', { taskId: 'nowhere' }],
    ['DeleteTaskPushNotificationConfig', { taskId: 'nowhere', id: 'a' }],
    ['SendMessage', { message: user('hi', { taskId: 'nowhere' }) }],
    ['SendStreamingMessage', { message: user('hi', { taskId: 'nowhere' }) }],
  ] as const

  verifies('a2a-1.0.not-found', 'no such task, and the task of somebody else (§3.4.2, §13.1)', async () => {
    const { url } = await startServer(demo(), { tokens: { ann: 'secret-of-ann-0123456789abcdef', bob: 'secret-of-bob-0123456789abcdef' } })
    const api = binding(url)
    const ann = { authorization: 'Bearer secret-of-ann-0123456789abcdef' }
    const bob = { authorization: 'Bearer secret-of-bob-0123456789abcdef' }
    const { result } = await api.call('SendMessage', { message: user('/approve me') }, ann)
    const { id } = result.task
    for (const [operation, params] of named) {
      const ofAnn: object = JSON.parse(JSON.stringify(params).replaceAll('nowhere', id)) as object
      for (const given of [params, ofAnn]) {
        expect([operation, (await api.call(operation, given, bob)).error]).toMatchObject([operation, { reason: 'TASK_NOT_FOUND' }])
      }
    }
    expect((await api.call('ListTasks', {}, bob)).result).toEqual({ tasks: [], nextPageToken: '', pageSize: 50, totalSize: 0 })
    expect((await api.call('GetTask', { id }, ann)).result.status.state).toBe('TASK_STATE_INPUT_REQUIRED')
  })

  verifies('a2a-1.0.card-unsupported', 'GetExtendedAgentCard where there is none (§3.3.4)', async () => {
    const api = await start()
    expect((await api.call('GetExtendedAgentCard', {})).error).toMatchObject({ reason: 'UNSUPPORTED_OPERATION' })
  })
})
