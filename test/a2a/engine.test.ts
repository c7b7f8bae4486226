import { expect } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { text } from '../../src/core/agent-kit/drafts.ts'
import { UampError } from '../../src/protocol/errors.ts'
import { verifies } from '../support/verifies.ts'
import { answering, stepwise } from './engine-agents.ts'
import { serveEngine, statesIn, streamedText, textOf, type Heard } from './engine-client.ts'

/** As 1.0 subscribes. */
const STAYS = { 'x-stays': 'yes' }

const upTo = (last: number): string => Array.from({ length: last }, (_, n) => n + 1).join(' ')

verifies(['a2a-1.0.task-blocking', 'a2a-1.0.context-new'], 'a blocking send answers with the ended task', async () => {
  const { client } = await serveEngine(demo())
  const task = await client.task('hello')
  expect(task.status.state).toBe('TASK_STATE_COMPLETED')
  expect(task.status.message).toBeUndefined()
  expect(task.status.timestamp).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  expect(textOf(task)).toBe('You said: hello')
  expect(task.artifacts).toHaveLength(1)
  expect(task.history).toEqual([
    { messageId: 'm1', role: 'ROLE_USER', parts: [{ text: 'hello' }], taskId: task.id, contextId: task.contextId },
  ])
  expect(await client.get(task.id)).toEqual(task)
  const named = await client.task({ message: { contextId: 'my context/1', parts: [{ text: 'x' }] } })
  expect(named.contextId).toBe('my context/1')
})

verifies('a2a-1.0.task-immediately', 'a send that returns immediately answers before the end', async () => {
  const work = stepwise(['one', ' two'])
  const { client } = await serveEngine(work.agent)
  const task = await client.task({ returnImmediately: true })
  expect(task.status.state).toBe('TASK_STATE_WORKING')
  work.let(1)
  const stream = await client.subscribe(task.id)
  await stream.until(() => streamedText(stream.heard) === 'one')
  expect(textOf(await client.get(task.id))).toBe('one')
  work.let(1)
  await stream.all()
  expect(await client.get(task.id)).toMatchObject({
    status: { state: 'TASK_STATE_COMPLETED' },
    artifacts: [{ parts: [{ text: 'one two' }] }],
  })
})

verifies(['a2a-1.0.task-stream', 'a2a-1.0.task-chunks'], 'a stream is the task, its updates, and the end', async () => {
  const { client } = await serveEngine(demo())
  const heard = await (await client.stream('/count 30')).all()
  expect(heard[0]?.event).toMatchObject({ task: { status: { state: 'TASK_STATE_SUBMITTED' }, history: [{ messageId: 'm1' }] } })
  expect(statesIn(heard)).toEqual(['SUBMITTED', 'WORKING', 'COMPLETED'])
  const updates = heard.flatMap(({ event }) => ('artifactUpdate' in event ? [event.artifactUpdate] : []))
  expect(new Set(updates.map(({ artifact }) => artifact.artifactId)).size).toBe(1)
  expect(updates.map(({ append }) => append)).toEqual([false, ...Array.from({ length: 30 }, () => true)])
  expect(updates.map(({ lastChunk = false }) => lastChunk)).toEqual([...Array.from({ length: 30 }, () => false), true])
  expect(heard.at(-1)?.event).toMatchObject({ statusUpdate: { status: { state: 'TASK_STATE_COMPLETED' } } })
  expect(streamedText(heard)).toBe(upTo(30))
  const task = await client.get(idOf(heard))
  expect(textOf(task)).toBe(upTo(30))
  expect(task.artifacts?.[0]?.artifactId).toBe(updates[0]?.artifact.artifactId)
  const [last] = heard.slice(-1)
  expect(last?.event).toMatchObject({ statusUpdate: { status: task.status } })
})

verifies(
  ['a2a-1.0.task-detached', 'a2a-1.0.task-subscribe', 'a2a-1.0.task-same-order'],
  'the client leaves: the task runs on, and others get the task and the rest in order',
  async () => {
    const pieces = Array.from({ length: 500 }, (_, n) => `${n} `)
    const work = stepwise(pieces)
    const { client } = await serveEngine(work.agent)
    const first = await client.stream('go')
    work.let(100)
    await first.until(() => streamedText(first.heard) === pieces.slice(0, 100).join(''))
    const id = idOf(first.heard)
    first.leave()
    const [second, third] = await Promise.all([client.subscribe(id), client.subscribe(id)])
    await Promise.all([second.next(), third.next()])
    expect(second.heard[0]?.event).toMatchObject({ task: { id, status: { state: 'TASK_STATE_WORKING' } } })
    expect(streamedText(second.heard)).toBe(pieces.slice(0, 100).join(''))
    work.let(400)
    await Promise.all([second.all(), third.all()])
    expect(streamedText(second.heard)).toBe(pieces.join(''))
    expect(second.heard).toEqual(third.heard)
    expect(statesIn(second.heard)).toEqual(['WORKING', 'COMPLETED'])
    expect(textOf(await client.get(id))).toBe(pieces.join(''))
  },
)

verifies('a2a-1.0.task-detached', 'the client of a blocking send leaves, and the task goes on', async () => {
  const work = stepwise(['a', 'b'])
  const { client, url } = await serveEngine(work.agent)
  const leave = new AbortController()
  const sent = fetch(`${url}/t/send`, { method: 'POST', body: JSON.stringify(client.request('x')), signal: leave.signal })
  const working = async () => (await client.list({ state: 'TASK_STATE_WORKING' })).tasks[0]
  while (!(await working()));
  const id = (await working())?.id ?? ''
  const stream = await client.subscribe(id)
  await stream.next()
  leave.abort()
  await expect(sent).rejects.toThrow()
  work.let(2)
  await stream.all()
  expect(textOf(await client.get(id))).toBe('ab')
})

verifies('a2a-1.0.task-subscribe', 'a stream is resumed after any of its events, and misses and repeats nothing', async () => {
  const { client } = await serveEngine(
    answering(async function* () {
      yield text('one')
      yield {
        type: 'response.delta',
        delta: { type: 'file', file: btoa('x'), filename: 'x.txt', mime_type: 'text/plain', content_id: 'f1' },
      }
      yield text(' two')
      yield text(' three')
    }),
  )
  const heard = await (await client.stream('go')).all()
  const id = idOf(heard)
  const numbered = heard.filter((event, index) => event.id !== heard[index - 1]?.id)
  expect(numbered.length).toBeGreaterThan(6)
  for (const [index, event] of heard.entries()) {
    if (event.id !== numbered.find((each) => each === event)?.id) continue
    const rest = await (await client.subscribe(id, event.id)).all()
    expect(rest.map((each) => each.event)).toEqual(heard.slice(index + 1).map((each) => each.event))
  }
  // Of what is no event of it, nothing is concluded.
  await expect(client.subscribe(id, 'nonsense', STAYS)).rejects.toMatchObject({ error: { reason: 'UNSUPPORTED_OPERATION' } })
})

verifies('a2a-1.0.task-subscribe', 'a stream is resumed while the task runs', async () => {
  const work = stepwise(['a', 'b', 'c', 'd'])
  const { client } = await serveEngine(work.agent)
  const first = await client.stream('go')
  work.let(2)
  await first.until(() => streamedText(first.heard) === 'ab')
  first.leave()
  const again = await client.subscribe(idOf(first.heard), first.heard.at(-2)?.id)
  await again.next()
  expect(again.heard[0]).toEqual(first.heard.at(-1))
  work.let(2)
  await again.all()
  expect(again.heard.map(({ event }) => ('artifactUpdate' in event ? event.artifactUpdate.artifact.parts[0]?.text : ''))).toEqual([
    'b',
    'c',
    'd',
    '',
    '',
  ])
})

verifies('a2a-1.0.task-subscribe-ended', 'a task that has ended cannot be subscribed to', async () => {
  const { client } = await serveEngine(demo())
  const { id } = await client.task('x')
  await expect(client.subscribe(id, undefined, STAYS)).rejects.toMatchObject({ error: { reason: 'UNSUPPORTED_OPERATION' } })
  await expect(client.subscribe('nobody')).rejects.toMatchObject({ error: { reason: 'TASK_NOT_FOUND' } })
})

verifies(['a2a-1.0.task-cancel', 'a2a-1.0.task-cancel-ended'], 'a task is cancelled while it is worked on', async () => {
  const work = stepwise(['a', 'b'])
  const { client } = await serveEngine(work.agent)
  const stream = await client.stream('go')
  work.let(1)
  await stream.until(() => streamedText(stream.heard) === 'a')
  const id = idOf(stream.heard)
  const cancelled = await client.cancel(id)
  expect(cancelled.status.state).toBe('TASK_STATE_CANCELED')
  expect(textOf(cancelled)).toBe('a')
  expect(statesIn(await stream.all()).at(-1)).toBe('CANCELED')
  expect(await client.get(id)).toEqual(cancelled)
  expect(await client.cancel(id)).toMatchObject({ error: { reason: 'TASK_NOT_CANCELABLE' } })
  expect(await client.send({ message: { taskId: id } })).toMatchObject({ error: { reason: 'UNSUPPORTED_OPERATION' } })
})

verifies('a2a-1.0.task-cancel', 'several cancel at once, and all are told the same', async () => {
  const work = stepwise(['a'])
  const { client } = await serveEngine(work.agent)
  const { id } = await client.task({ returnImmediately: true })
  const all = await Promise.all(Array.from({ length: 5 }, () => client.cancel(id)))
  for (const task of all) expect(task.status?.state ?? task.error.reason).toMatch(/^TASK_STATE_CANCELED$|^TASK_NOT_CANCELABLE$/)
  expect(all.filter(({ status }) => status?.state === 'TASK_STATE_CANCELED').length).toBeGreaterThan(0)
})

verifies('a2a-1.0.task-failed', 'a task whose agent fails has failed, and says why', async () => {
  const { client } = await serveEngine(
    answering(async function* () {
      yield text('half')
      throw new UampError('provider_error', 'The model is away')
    }),
  )
  const heard = await (await client.stream('go')).all()
  const task = await client.get(idOf(heard))
  expect(task.status).toMatchObject({
    state: 'TASK_STATE_FAILED',
    message: { role: 'ROLE_AGENT', taskId: task.id, parts: [{ text: 'The model is away' }], metadata: { code: 'provider_error' } },
  })
  expect(textOf(task)).toBe('half')
  expect(task.history?.map(({ role }) => role)).toEqual(['ROLE_USER', 'ROLE_AGENT'])
  expect(heard.at(-1)?.event).toMatchObject({ statusUpdate: { status: task.status } })
  const blocking = await client.task('go')
  expect(blocking.status.state).toBe('TASK_STATE_FAILED')
  expect(textOf(blocking)).toBe('half')
})

verifies('a2a-1.0.task-failed', 'what an agent threw by accident is not told', async () => {
  const { client } = await serveEngine(
    // oxlint-disable-next-line require-yield -- it fails before
    answering(async function* () {
      throw new Error('secret of the database')
    }),
  )
  const task = await client.task('go')
  expect(task.status.state).toBe('TASK_STATE_FAILED')
  expect(JSON.stringify(task)).not.toContain('secret')
})

function idOf(heard: readonly Heard[]): string {
  const event = heard[0]?.event
  return event && 'task' in event ? event.task.id : ''
}
