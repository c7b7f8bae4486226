import { expect, test } from 'vitest'
import { sseParser } from '../../wire/sse-parse.ts'
import type { Message, StreamEvent, Task, TaskState } from './model.ts'
import { fromArtifacts, fromCancelled, fromTask, taskLines } from './legacy-tasks.ts'

const timestamp = '2025-01-01T00:00:00.500Z'
const at = 1735689600.5
const place = { taskId: 't', contextId: 'c' }

const seen = (...events: readonly StreamEvent[]): unknown[] =>
  sseParser()(events.map(taskLines('t')).join('')).map(({ event, data }) => [event, JSON.parse(data)])

const agent = (parts: Message['parts'], metadata?: Message['metadata']): Message => ({
  messageId: 'm',
  role: 'ROLE_AGENT',
  parts,
  ...(metadata && { metadata }),
})
const status = (state: TaskState, message?: Message): StreamEvent => ({
  statusUpdate: { ...place, status: { state, timestamp, ...(message && { message }) } },
})

test('a task is started, says something and is completed', () => {
  const task: Task = { id: 't', contextId: 'c', status: { state: 'TASK_STATE_SUBMITTED', timestamp } }
  const artifact = { artifactId: 'a', parts: [{ text: 'Sunny.' }] }
  const end = { artifactId: 'a', parts: [{ text: '' }] }
  expect(
    seen(
      { task },
      status('TASK_STATE_WORKING'),
      { artifactUpdate: { ...place, artifact, append: false } },
      { artifactUpdate: { ...place, artifact: end, append: true, lastChunk: true } },
      status('TASK_STATE_COMPLETED'),
    ),
  ).toEqual([
    ['task.started', { id: 't', status: 'running', createdAt: at }],
    ['task.message', { role: 'agent', parts: [{ type: 'text', text: 'Sunny.' }] }],
    ['task.completed', { id: 't', status: 'completed', completedAt: at }],
  ])
})

test('what does not end well is task.failed, with the reason', () => {
  const failed = status('TASK_STATE_FAILED', agent([{ text: 'No model' }], { code: 'provider_error' }))
  expect(seen(failed)).toEqual([['task.failed', { id: 't', status: 'failed', error: 'No model', code: 'provider_error' }]])
  expect(seen(status('TASK_STATE_REJECTED', agent([{ text: 'Not my job' }])))).toEqual([
    ['task.failed', { id: 't', status: 'failed', error: 'Not my job', code: 'rejected' }],
  ])
  expect(seen(status('TASK_STATE_CANCELED'))).toEqual([
    ['task.failed', { id: 't', status: 'cancelled', error: 'The task was cancelled', code: 'cancelled' }],
  ])
})

const payment = agent([
  { text: 'Payment required: 0.01 USD' },
  { data: { type: 'payment.required', requirements: { amount: '0.01', currency: 'USD', schemes: [{ scheme: 'token' }] } } },
])

test('a question for money is task.failed with every way to pay', () => {
  expect(seen(status('TASK_STATE_INPUT_REQUIRED', payment))).toEqual([
    [
      'task.failed',
      {
        id: 't',
        status: 'failed',
        error: 'Payment required: 0.01 USD. Send a new task with a payment token in the header X-PAYMENT',
        code: 'payment_required',
        status_code: 402,
        accepts: [{ scheme: 'token', amount: '0.01', currency: 'USD', asset: 'USD', maxTimeoutSeconds: 300, extra: { tokenType: 'jwt' } }],
      },
    ],
  ])
})

test('any other question is said, and the task goes on', () => {
  const question = agent([{ text: 'May I?' }, { data: { type: 'x.approval.request', approval_id: 'a' } }])
  expect(seen(status('TASK_STATE_INPUT_REQUIRED', question))).toEqual([
    [
      'task.message',
      {
        role: 'agent',
        parts: [
          { type: 'text', text: 'May I?' },
          { type: 'data', data: { type: 'x.approval.request', approval_id: 'a' } },
        ],
      },
    ],
    ['task.input_required', { id: 't', status: 'running' }],
  ])
})

test('every state has a word', () => {
  const word = (state: TaskState, message?: Message) =>
    fromTask({ id: 't', contextId: 'c', status: { state, timestamp, ...(message && { message }) } }) as { status: string }
  const states = ['SUBMITTED', 'WORKING', 'INPUT_REQUIRED', 'AUTH_REQUIRED', 'COMPLETED', 'FAILED', 'REJECTED', 'CANCELED'] as const
  expect(states.map((state) => word(`TASK_STATE_${state}`).status)).toEqual([
    'pending',
    'running',
    'running',
    'running',
    'completed',
    'failed',
    'failed',
    'cancelled',
  ])
  expect(word('TASK_STATE_INPUT_REQUIRED', payment)).toMatchObject({ status: 'failed', code: 'payment_required', status_code: 402 })
})

test('the bodies of a task, of its artifacts and of its end', () => {
  const task: Task = {
    id: 't',
    contextId: 'c',
    status: { state: 'TASK_STATE_COMPLETED', timestamp },
    artifacts: [
      { artifactId: 'a', parts: [{ text: 'one' }] },
      { artifactId: 'b', parts: [{ url: 'https://a.example/b.png', mediaType: 'image/png', filename: 'b.png' }] },
      { artifactId: 'd', parts: [{ data: { n: 1 } }] },
    ],
  }
  expect(fromTask(task)).toEqual({ id: 't', contextId: 'c', status: 'completed', updatedAt: at, result: { content: 'one' }, error: null })
  expect(fromArtifacts(task)).toEqual({
    task_id: 't',
    artifacts: [
      { id: 'a', type: 'text', mimeType: 'text/plain', data: 'one', createdAt: at },
      { id: 'b', type: 'file', mimeType: 'image/png', uri: 'https://a.example/b.png', name: 'b.png', createdAt: at },
      { id: 'd', type: 'data', mimeType: 'application/json', data: { n: 1 }, createdAt: at },
    ],
  })
  expect(fromCancelled(task)).toEqual({ id: 't', status: 'completed', cancelled: false })
})
