import { expect, test } from 'vitest'
import { sseParser } from '../../../wire/sse-parse.ts'
import type { StreamBatch, StreamEvent, Task, TaskStream } from '../model.ts'
import { parseParams } from '../request.ts'
import { rpcLines, streamFrames } from '../stream.ts'
import { eventsOf, fromTask, TaskSendParams, toSendRequest } from './v01.ts'

const timestamp = '2025-01-01T00:00:00.000Z'
const place = { taskId: 't', contextId: 's' }

type Step = StreamEvent | { readonly text: string; readonly of: string; readonly first: boolean }

const batchOf = (steps: readonly Step[]): StreamBatch => ({
  visit: (visitor) => {
    for (const step of steps) {
      if ('text' in step) visitor.text(step.text, { artifactId: step.of, first: step.first, seq: undefined })
      else visitor.event(step, undefined)
    }
  },
})

/** What a client of 0.1 reads from a stream. The last steps come with the end. */
async function written(...batches: readonly (readonly Step[])[]): Promise<unknown[]> {
  async function* each(): AsyncGenerator<StreamBatch, StreamBatch | undefined> {
    for (const steps of batches.slice(0, -1)) yield batchOf(steps)
    return batchOf(batches.at(-1) ?? [])
  }
  const stream: TaskStream = { ...place, batches: each() }
  const texts: string[] = []
  const frames = streamFrames(stream, rpcLines(1, eventsOf(stream)))[Symbol.asyncIterator]()
  for (;;) {
    const { done, value } = await frames.next()
    if (typeof value === 'object' && 'eachText' in value) value.eachText((text) => texts.push(text))
    if (done) return texts.flatMap((text) => sseParser()(text).map(({ data }) => JSON.parse(data).result))
  }
}

test('a stream has two events, and artifacts are told apart by their index', async () => {
  const task: Task = { id: 't', contextId: 's', status: { state: 'TASK_STATE_SUBMITTED', timestamp } }
  const image = { artifactId: 'i', name: 'dot.png', parts: [{ raw: 'AAEC', mediaType: 'image/png' }] }
  const events = await written(
    [{ task }, { statusUpdate: { ...place, status: { state: 'TASK_STATE_WORKING', timestamp } } }],
    [{ text: 'a "b"', of: 'x', first: true }, { artifactUpdate: { ...place, artifact: image, append: false, lastChunk: true } }],
    [
      { text: 'c', of: 'x', first: false },
      { artifactUpdate: { ...place, artifact: { artifactId: 'x', parts: [{ text: '' }] }, append: true, lastChunk: true } },
      { statusUpdate: { ...place, status: { state: 'TASK_STATE_COMPLETED', timestamp } } },
    ],
  )
  expect(events).toEqual([
    { id: 't', status: { state: 'submitted', timestamp }, final: false },
    { id: 't', status: { state: 'working', timestamp }, final: false },
    { id: 't', artifact: { parts: [{ type: 'text', text: 'a "b"' }], index: 0, append: false } },
    {
      id: 't',
      artifact: {
        name: 'dot.png',
        parts: [{ type: 'file', file: { bytes: 'AAEC', mimeType: 'image/png' } }],
        index: 1,
        append: false,
        lastChunk: true,
      },
    },
    { id: 't', artifact: { parts: [{ type: 'text', text: 'c' }], index: 0, append: true } },
    { id: 't', artifact: { parts: [{ type: 'text', text: '' }], index: 0, append: true, lastChunk: true } },
    { id: 't', status: { state: 'completed', timestamp }, final: true },
  ])
})

test('who comes back gets what there is so far, and of a task that is over its status last', async () => {
  const artifacts = [{ artifactId: 'x', parts: [{ text: 'so far' }] }]
  const task = (state: Task['status']['state']): Task => ({ id: 't', contextId: 's', status: { state, timestamp }, artifacts })
  const artifact = { id: 't', artifact: { parts: [{ type: 'text', text: 'so far' }], index: 0, append: false } }
  expect(await written([{ task: task('TASK_STATE_WORKING') }])).toEqual([
    { id: 't', status: { state: 'working', timestamp }, final: false },
    artifact,
  ])
  expect(await written([{ task: task('TASK_STATE_COMPLETED') }])).toEqual([
    artifact,
    { id: 't', status: { state: 'completed', timestamp }, final: true },
  ])
})

test('a message without a task is what the task ends with', async () => {
  const message = { messageId: 'm', role: 'ROLE_AGENT', parts: [{ text: 'hi' }] } as const
  expect(await written([{ message }])).toEqual([
    { id: 't', status: { state: 'completed', message: { role: 'agent', parts: [{ type: 'text', text: 'hi' }] } }, final: true },
  ])
})

test('states that 0.1 does not know have the nearest name', () => {
  const shown = (['TASK_STATE_REJECTED', 'TASK_STATE_AUTH_REQUIRED'] as const).map((state) =>
    fromTask({ id: 't', contextId: 's', status: { state, timestamp } }),
  )
  expect(shown).toEqual([
    { id: 't', sessionId: 's', status: { state: 'failed', timestamp } },
    { id: 't', sessionId: 's', status: { state: 'input-required', timestamp } },
  ])
})

test('a request of 0.1 says everything that one of 1.0 can', () => {
  const params = {
    id: 't',
    sessionId: 's',
    message: {
      role: 'user',
      parts: [
        { type: 'text', text: 'a' },
        { type: 'file', file: { name: 'a.csv', mimeType: 'text/csv', bytes: 'AAEC' } },
        { type: 'data', data: [1, 2] },
        { type: 'data', data: 'AAEC', mimeType: 'image/png' },
      ],
      metadata: { m: 1 },
    },
    pushNotification: { url: 'https://a.example/hook', authentication: { schemes: ['Bearer'] } },
    historyLength: 3,
    metadata: { r: 1 },
  }
  expect(toSendRequest(parseParams(TaskSendParams, params), 'new')).toEqual({
    message: {
      messageId: 'new',
      role: 'ROLE_USER',
      contextId: 's',
      parts: [
        { text: 'a' },
        { raw: 'AAEC', filename: 'a.csv', mediaType: 'text/csv' },
        { data: [1, 2] },
        { raw: 'AAEC', mediaType: 'image/png' },
      ],
      metadata: { m: 1 },
    },
    generation: '0.1',
    chosenId: 't',
    returnImmediately: false,
    historyLength: 3,
    push: { url: 'https://a.example/hook', authentication: { scheme: 'Bearer' } },
    metadata: { r: 1 },
  })
})
