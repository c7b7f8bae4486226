import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { text } from '../../src/core/agent-kit/drafts.ts'
import { serve } from '../../src/serve/index.ts'
import type { Store } from '../../src/core/ports/store.ts'
import type { Json } from '../../src/protocol/json.ts'
import { startChild } from '../support/child.ts'
import { verifies } from '../support/verifies.ts'
import { answering, stop } from './engine-agents.ts'
import { engineClient, serveEngine, statesIn, streamedText, textOf } from './engine-client.ts'
import { engineTransport } from './engine-transport.ts'

const SOURCE = fileURLToPath(new URL('engine-server.ts', import.meta.url))
/** Where packages are found from. */
const SERVER = fileURLToPath(new URL(`../../node_modules/.cache/uamp-engine-server-${process.pid}.mjs`, import.meta.url))

beforeAll(() => build({ entryPoints: [SOURCE], outfile: SERVER, bundle: true, packages: 'external', format: 'esm', platform: 'node' }))
afterAll(() => rmSync(SERVER, { force: true }))

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'uamp-test-'))
  onTestFinished(() => rmSync(path, { recursive: true, force: true }))
  return path
}

async function startEngine(data: string) {
  const { url, kill } = await startChild(data, { program: [SERVER, data] })
  return { client: engineClient(url), kill }
}

verifies('a2a-1.0.task-durable', 'killed in mid-task: it has failed as interrupted, with what it had said', async () => {
  const data = folder()
  const first = await startEngine(data)
  const done = await first.client.task('hello')
  const waiting = await first.client.task('/approve x')
  const stream = await first.client.stream({ message: { contextId: done.contextId, parts: [{ text: '/count 100000 1' }] } })
  await stream.until(() => streamedText(stream.heard).endsWith(' 200'))
  const event = stream.heard[0]?.event
  const id = event && 'task' in event ? event.task.id : ''
  await first.kill()

  const { client } = await startEngine(data)
  const { tasks, totalSize } = await client.list()
  expect(totalSize).toBe(3)
  expect(tasks[0]).toMatchObject({ id, status: { state: 'TASK_STATE_FAILED' } })
  const task = await client.get(id)
  expect(task.status.message).toMatchObject({
    parts: [{ text: expect.stringMatching(/^Interrupted/) as unknown }],
    metadata: { code: 'interrupted' },
  })
  const [kept, told] = [textOf(task), streamedText(stream.heard)]
  expect(kept).toMatch(/^1 2 3 /)
  expect(kept.startsWith(told) || told.startsWith(kept)).toBe(true)
  expect(task.history?.map(({ role }) => role)).toEqual(['ROLE_USER', 'ROLE_AGENT'])
  expect(await client.get(done.id)).toEqual(done)
  // Whoever followed it is told the rest.
  const rest = await (await client.subscribe(id, stream.heard.at(-1)?.id)).all()
  expect(statesIn(rest)).toEqual(['FAILED'])
  await expect(client.subscribe(id, undefined, { 'x-stays': 'yes' })).rejects.toMatchObject({ error: { reason: 'UNSUPPORTED_OPERATION' } })
  // What waited still waits, and its agent is run again.
  expect((await client.get(waiting.id)).status).toEqual(waiting.status)
  expect(textOf(await client.task({ message: { taskId: waiting.id, parts: [{ text: 'yes' }] } }))).toContain('Approved: x')
  const next = await client.task({ message: { contextId: done.contextId, parts: [{ text: '/history' }] } })
  expect(textOf(next).split('\n').slice(0, 3)).toEqual(['user: hello', 'assistant: You said: hello', 'user: /count 100000 1'])
})

verifies('a2a-1.0.task-durable', 'a server that is shut down interrupts its tasks, and says so', async () => {
  const data = folder()
  const agent = answering(async function* (_, { signal }) {
    yield text('begun')
    await new Promise((resolve) => signal.addEventListener('abort', resolve))
  })
  const options = { port: 0, data, log: () => undefined }
  const server = await serve(agent, { ...options, transports: [engineTransport()] })
  const stream = await engineClient(server.url).stream('go')
  await stream.until(() => streamedText(stream.heard) === 'begun')
  const [heard] = await Promise.all([stream.all(), server.close({ graceMs: 0 })])
  expect(statesIn(heard)).toEqual(['SUBMITTED', 'WORKING', 'FAILED'])
  const { client } = await serveEngine(agent, { data })
  const [task] = (await client.list({ includeArtifacts: true })).tasks
  expect(task?.status).toMatchObject({ state: 'TASK_STATE_FAILED', message: { metadata: { code: 'interrupted' } } })
  expect(task && textOf(task)).toBe('begun')
})

test('the end of a task is written together with the end of its response, or not at all', async () => {
  const data = folder()
  const agent = answering(async function* () {
    yield text('said')
    yield stop('rejected')
  })
  let lost = 0
  const lossy = {
    onHost: ({ store }: Parameters<NonNullable<NonNullable<Parameters<typeof engineTransport>[0]>['onHost']>>[0]) => {
      const { batch } = store
      store.batch = async (operations, how) => {
        const ended = operations.some(({ op, ...rest }) => op === 'set' && /"end":/.test(JSON.stringify(rest)))
        if (ended) lost++
        else await batch(operations, how)
      }
    },
  }
  const first = await serve(agent, { port: 0, data, log: () => undefined, transports: [engineTransport(lossy)] })
  await (await engineClient(first.url).stream('go')).all()
  await first.close({ graceMs: 0 })
  expect(lost).toBe(1)
  const { client } = await serveEngine(agent, { data })
  const { tasks } = await client.list({})
  expect(tasks.map(({ status }) => status)).toMatchObject([{ state: 'TASK_STATE_FAILED', message: { metadata: { code: 'interrupted' } } }])
})

test('a task that version 0.1 left running is closed as its response was', async () => {
  const data = folder()
  const agent = answering(async function* () {
    yield text('said')
  })
  let store: Store | undefined
  const options = { port: 0, data, log: () => undefined }
  const first = await serve(agent, { ...options, transports: [engineTransport({ onHost: (host) => void (store = host.store) })] })
  const { id } = await engineClient(first.url).task('go')
  for await (const { key, index } of store?.scan() ?? []) {
    if (!key.includes('a2a-task')) continue
    const record = (await store?.get(key))?.value as { steps: { end?: object }[]; status: object }
    const steps = record.steps.map(({ end: _, ...step }) => step)
    const left = { ...record, steps, status: { ...record.status, state: 'TASK_STATE_WORKING' } }
    await store?.set(key, left as unknown as Json, { index: [...Object.entries(index), ['a2a-live', '1']] })
  }
  await first.close({ graceMs: 0 })
  const { client } = await serveEngine(agent, { data })
  const task = await client.get(id)
  expect(task.status.state).toBe('TASK_STATE_COMPLETED')
  expect(textOf(task)).toBe('said')
})
