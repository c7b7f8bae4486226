import { expect, test, vi } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import type { Host } from '../../src/core/ports/transport.ts'
import type { TaskState } from '../../src/transports/a2a/model.ts'
import { TaskRecords } from '../../src/transports/a2a/tasks/records.ts'
import { verifies } from '../support/verifies.ts'
import { later, serveEngine, textOf } from './engine-client.ts'

/** Ended tasks as they are stored, one a second, every tenth failed. */
async function fill({ store }: Host, count: number): Promise<void> {
  const records = new TaskRecords(store, 3_600_000, undefined)
  for (let from = 0; from < count; from += 500) {
    const made = Array.from({ length: Math.min(500, count - from) }, (_, index) => {
      const n = from + index
      const updatedAt = Date.UTC(2026, 0, 1) + n * 1000
      const state: TaskState = n % 10 === 0 ? 'TASK_STATE_FAILED' : 'TASK_STATE_COMPLETED'
      return records.set({
        id: `t${n}`,
        contextId: `c${n % 100}`,
        agent: 'demo',
        tenant: 'default',
        owner: 'anonymous',
        generation: '1.0',
        createdAt: updatedAt,
        updatedAt,
        status: { state, timestamp: new Date(updatedAt).toISOString() },
        steps: [],
        messages: 0,
      })
    })
    await store.batch(made)
  }
}

async function filled(count: number) {
  let host: Host | undefined
  const server = await serveEngine(demo(), { engine: { onHost: (given) => (host = given) } })
  if (host) await fill(host, count)
  return { ...server, host: host as Host }
}

verifies(['a2a-1.0.task-list', 'a2a-1.0.task-list-filter'], 'ten thousand tasks, page by page', async () => {
  const { client } = await filled(10_000)
  const seen: string[] = []
  let pageToken = ''
  do {
    const page = await client.list({ pageSize: 100, pageToken, historyLength: 0 })
    expect(page.totalSize).toBe(10_000)
    expect(page.pageSize).toBe(100)
    seen.push(...page.tasks.map(({ id }) => id))
    pageToken = page.nextPageToken
  } while (pageToken !== '')
  expect(seen).toEqual(Array.from({ length: 10_000 }, (_, n) => `t${9999 - n}`))

  const failed = await client.list({ state: 'TASK_STATE_FAILED', pageSize: 3 })
  expect(failed.tasks.map(({ id }) => id)).toEqual(['t9990', 't9980', 't9970'])
  expect(failed.totalSize).toBe(1000)
  const context = await client.list({ contextId: 'c7' })
  expect([context.totalSize, context.tasks.length, context.tasks[0]?.id]).toEqual([100, 50, 't9907'])
  const both = await client.list({ contextId: 'c10', state: 'TASK_STATE_FAILED', pageSize: 1 })
  expect([both.totalSize, both.tasks[0]?.id]).toEqual([100, 't9910'])
  expect(await client.list({ contextId: 'c7', state: 'TASK_STATE_WORKING' })).toMatchObject({ tasks: [], totalSize: 0, nextPageToken: '' })

  const statusAfter = Date.UTC(2026, 0, 1) + 9_995_000
  const recent = await client.list({ statusAfter, pageSize: 5 })
  expect(recent).toMatchObject({ totalSize: 5, nextPageToken: '' })
  expect(recent.tasks.map(({ id }) => id)).toEqual(['t9999', 't9998', 't9997', 't9996', 't9995'])
  const first = await client.list({ statusAfter, pageSize: 3 })
  const second = await client.list({ statusAfter, pageSize: 3, pageToken: first.nextPageToken })
  expect(second.tasks.map(({ id }) => id)).toEqual(['t9996', 't9995'])
  expect(second.nextPageToken).toBe('')
})

test('a page reads as many tasks as it shows, however many there are', { timeout: 60_000 }, async () => {
  const { client, host } = await filled(3_000)
  await client.list()
  let limits = 0
  const { list } = host.store
  host.store.list = async (index, page) => {
    limits += page.limit ?? 100
    return list(index, page)
  }
  await client.list({ pageSize: 20, historyLength: 0 })
  expect(limits).toBe(20)
})

verifies('a2a-1.0.task-list', 'the newest status comes first, and a task that goes on comes up', async () => {
  const { client } = await serveEngine(demo())
  const waiting = await client.task('/approve x')
  later(waiting)
  const other = await client.task('hello')
  later(other)
  expect((await client.list()).tasks.map(({ id }) => id)).toEqual([other.id, waiting.id])
  expect((await client.list({ state: 'TASK_STATE_INPUT_REQUIRED' })).totalSize).toBe(1)
  await client.task({ message: { taskId: waiting.id, parts: [{ text: 'yes' }] } })
  const { tasks, totalSize } = await client.list({ includeArtifacts: true })
  expect(tasks.map(({ id }) => id)).toEqual([waiting.id, other.id])
  expect(totalSize).toBe(2)
  expect(tasks[1] && textOf(tasks[1])).toBe('You said: hello')
  expect((await client.list({ state: 'TASK_STATE_INPUT_REQUIRED' })).totalSize).toBe(0)
  expect((await client.list()).tasks.every((task) => !('artifacts' in task))).toBe(true)
})

verifies('a2a-1.0.task-history', 'the newest messages, if not all are wanted', async () => {
  const { client } = await serveEngine(demo())
  const { id } = await client.task('/approve x')
  const task = await client.task({ historyLength: 2, message: { taskId: id, messageId: 'last', parts: [{ text: 'yes' }] } })
  expect(task.history?.map(({ role }) => role)).toEqual(['ROLE_AGENT', 'ROLE_USER'])
  expect(task.history?.at(-1)?.messageId).toBe('last')
  expect((await client.get(id, 1)).history).toHaveLength(1)
  expect('history' in (await client.get(id, 0))).toBe(false)
  expect((await client.get(id, 100)).history).toHaveLength(3)
  expect((await client.list({ historyLength: 1 })).tasks[0]?.history).toHaveLength(1)
})

test('a page that is none of this list is refused', async () => {
  const { client } = await serveEngine(demo())
  for (const pageToken of ['x', '!', btoa('[1,2]'), btoa('{}'), btoa('["a"]'), btoa('["\\ud800","b"]')]) {
    expect(await client.list({ pageToken })).toMatchObject({ error: { reason: 'INVALID_PARAMS' } })
  }
  expect(await client.list({ contextId: '\ud800' })).toMatchObject({ tasks: [], totalSize: 0 })
})

test('a page of large tasks is read no further than its reader may hold', async () => {
  let host: Host | undefined
  const limits = { heldBytesPerPrincipal: 8 * 1024 * 1024 }
  const { client } = await serveEngine(demo(), { limits, engine: { onHost: (given) => (host = given) } })
  for (let n = 0; n < 8; n++) await client.task('/big 3000000')
  const read = vi.spyOn((host as Host).gateway, 'response')
  const { error } = await client.list({ pageSize: 8, includeArtifacts: true, historyLength: 0 })
  expect(error.message).toContain('too much in memory')
  expect(read).toHaveBeenCalledTimes(3)
  expect((await client.list({ pageSize: 2, includeArtifacts: true, historyLength: 0 })).tasks).toHaveLength(2)
})
