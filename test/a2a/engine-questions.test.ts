import { expect, test } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { text } from '../../src/core/agent-kit/drafts.ts'
import type { Host } from '../../src/core/ports/transport.ts'
import { TRUSTING } from '../support/money.ts'
import { verifies } from '../support/verifies.ts'
import { answering, stop } from './engine-agents.ts'
import { serveEngine, statesIn, streamedText, textOf } from './engine-client.ts'

const calling = answering(async function* (said, turn) {
  yield text('Looking. ')
  const { result, content_items } = await turn.ask('tool.call', { name: 'lookup', arguments: JSON.stringify({ said }) })
  yield text(`It is ${result}${content_items ? ` and ${content_items.length} items` : ''}.`)
})

const paying = answering(async function* (_, turn) {
  const schemes = [{ scheme: 'exact', network: 'base', address: '0xabc' }]
  const { payment } = await turn.ask('payment.required', {
    requirements: { amount: '5', currency: 'USDC', schemes, reason: 'Five, please' },
  })
  yield text(`Paid by ${payment.scheme} ${payment.network ?? payment.token}`)
})

verifies(['a2a-1.0.input-required', 'a2a-1.0.input-required-closes'], 'a tool call is answered on the same task', async () => {
  const { client } = await serveEngine(calling)
  const stream = await client.stream('Paris')
  const heard = await stream.all()
  expect(statesIn(heard)).toEqual(['SUBMITTED', 'WORKING', 'INPUT_REQUIRED'])
  const event = heard.at(-1)?.event
  const { status, taskId } = event && 'statusUpdate' in event ? event.statusUpdate : { status: undefined, taskId: '' }
  const question = status?.message?.parts[1]?.data as { call_id: string }
  expect(status?.message).toMatchObject({
    role: 'ROLE_AGENT',
    parts: [
      { text: expect.stringContaining('lookup') as unknown },
      { data: { type: 'tool.call', name: 'lookup', arguments: '{"said":"Paris"}' } },
    ],
  })
  const waiting = await client.get(taskId)
  expect(waiting.status).toEqual(status)
  expect(textOf(waiting)).toBe('Looking. ')

  const answer = { type: 'tool.result', call_id: question.call_id, result: { temperature: 20 } }
  const task = await client.task({ message: { taskId, messageId: 'answer', parts: [{ data: answer }] } })
  expect(task.id).toBe(taskId)
  expect(task.status.state).toBe('TASK_STATE_COMPLETED')
  expect(textOf(task)).toBe('Looking. |It is {"temperature":20}.')
  expect(task.history?.map(({ role, messageId }) => [role, messageId === 'answer'])).toEqual([
    ['ROLE_USER', false],
    ['ROLE_AGENT', false],
    ['ROLE_USER', true],
  ])
  expect(task.history?.[2]).toMatchObject({ taskId, contextId: task.contextId, parts: [{ data: answer }] })
  expect(await client.get(taskId)).toEqual(task)
})

verifies('a2a-1.0.input-required', 'to one question words are an answer, and what comes with them goes along', async () => {
  const { client } = await serveEngine(calling)
  const { id } = await client.task('Paris')
  expect(textOf(await client.task({ message: { taskId: id, parts: [{ text: 'sunny' }] } }))).toBe('Looking. |It is sunny.')
  const other = await client.task('Rome')
  const stream = await client.stream({
    message: { taskId: other.id, parts: [{ text: 'this' }, { raw: btoa('x'), mediaType: 'image/png' }] },
  })
  const heard = await stream.all()
  expect(heard[0]?.event).toMatchObject({ task: { id: other.id, status: { state: 'TASK_STATE_WORKING' }, artifacts: [{}] } })
  expect(streamedText(heard)).toBe('Looking. |It is this and 2 items.')
  expect(statesIn(heard).at(-1)).toBe('COMPLETED')
})

verifies('a2a-1.0.input-required', 'an approval is given or denied, as data or in words', async () => {
  const { client } = await serveEngine(demo())
  const ask = async () => {
    const task = await client.task('/approve delete everything')
    expect(task.status.state).toBe('TASK_STATE_INPUT_REQUIRED')
    expect(task.status.message?.parts[0]).toEqual({ text: 'delete everything' })
    const { approval_id } = task.status.message?.parts[1]?.data as { approval_id: string }
    return { id: task.id, approval_id }
  }
  const first = await ask()
  const data = { type: 'x.approval.response', approval_id: first.approval_id, approved: true, reason: 'fine' }
  expect(textOf(await client.task({ message: { taskId: first.id, parts: [{ data }] } }))).toBe('Approved: delete everything (fine)')
  const second = await ask()
  expect(textOf(await client.task({ message: { taskId: second.id, parts: [{ text: 'Yes, go on' }] } }))).toContain('Approved')
  const third = await ask()
  expect(textOf(await client.task({ message: { taskId: third.id, parts: [{ text: 'No!' }] } }))).toContain('Denied')
  const fourth = await ask()
  const vague = await client.send({ message: { taskId: fourth.id, parts: [{ text: 'what would that do?' }] } })
  expect(vague).toMatchObject({ error: { reason: 'INVALID_PARAMS', message: expect.stringContaining('x.approval.response') as unknown } })
  expect((await client.get(fourth.id)).status.state).toBe('TASK_STATE_INPUT_REQUIRED')
})

verifies('a2a-1.0.input-required', 'several questions are answered together, or not at all', async () => {
  const { client } = await serveEngine(
    answering(async function* (_, turn) {
      const [one, two] = await Promise.all([
        turn.ask('tool.call', { name: 'one', arguments: '{}', call_id: 'c1' }),
        turn.ask('tool.call', { name: 'two', arguments: '{}', call_id: 'c2' }),
      ])
      yield text(`${one.result} ${two.result}`)
    }),
  )
  const { id, status } = await client.task('go')
  expect(status.message?.parts).toHaveLength(3)
  const result = (call_id: string) => ({ data: { type: 'tool.result', call_id, result: `of ${call_id}` } })
  for (const parts of [[result('c1')], [{ text: 'both are fine' }], [result('c1'), result('c3')], [{ data: { type: 'tool.result' } }]]) {
    expect(await client.send({ message: { taskId: id, parts } })).toMatchObject({ error: { reason: 'INVALID_PARAMS' } })
  }
  expect(textOf(await client.task({ message: { taskId: id, parts: [result('c2'), result('c1')] } }))).toBe('of c1 of c2')
})

verifies('a2a-1.0.payment-asked', 'a payment is asked for and made on the same task', async () => {
  const { client, url } = await serveEngine(paying, { payments: TRUSTING })
  const { id, status } = await client.task('go')
  expect(status.state).toBe('TASK_STATE_INPUT_REQUIRED')
  expect(status.message?.parts[0]).toEqual({ text: 'Payment required: 5.00 USDC (Five, please)' })
  expect(status.message?.metadata).toMatchObject({
    'x402.payment.status': 'payment-required',
    'x402.payment.required': {
      x402Version: 1,
      accepts: [
        { scheme: 'exact', network: 'base', payTo: '0xabc', maxAmountRequired: '5.00', asset: 'USDC', description: 'Five, please' },
      ],
    },
  })
  expect(await client.send({ message: { taskId: id, parts: [{ text: 'here you are' }] } })).toMatchObject({
    error: { reason: 'INVALID_PARAMS' },
  })
  const payload = { x402Version: 1, scheme: 'exact', network: 'base', payload: { signature: '0x1' } }
  const metadata = { 'x402.payment.status': 'payment-submitted', 'x402.payment.payload': payload }
  const task = await client.task({ message: { taskId: id, metadata, parts: [{ text: 'here you are' }] } })
  expect(textOf(task)).toBe('Paid by exact base')
  expect(task.status).toMatchObject({
    state: 'TASK_STATE_COMPLETED',
    message: {
      metadata: {
        'x402.payment.status': 'payment-completed',
        'x402.payment.receipts': [{ success: true, transaction: expect.any(String) as unknown }],
      },
    },
  })
  // UAMP transports: what is paid with the first request needs no question.
  const paid = await fetch(`${url}/t/send`, {
    method: 'POST',
    body: JSON.stringify(client.request('go')),
    headers: { 'x-payment': 'token1' },
  })
  expect(await paid.json()).toMatchObject({ task: { status: { state: 'TASK_STATE_COMPLETED' } } })
})

verifies('a2a-1.0.payment-asked', 'whoever refuses to pay ends the task', async () => {
  const { client } = await serveEngine(paying)
  const { id } = await client.task('go')
  const refusal = { taskId: id, metadata: { 'x402.payment.status': 'payment-rejected' } }
  const heard = await (await client.stream({ message: refusal })).all()
  expect(heard).toHaveLength(1)
  const task = await client.get(id)
  expect(heard[0]?.event).toEqual({ task })
  expect(task.status).toMatchObject({ state: 'TASK_STATE_CANCELED', message: { metadata: { 'x402.payment.status': 'payment-rejected' } } })
})

verifies(['a2a-1.0.input-required', 'a2a-1.0.input-required-closes'], 'an agent may ask in its own words', async () => {
  const { client } = await serveEngine(
    answering(async function* (said, { messages }) {
      if (messages.length === 1) yield stop('input_required', 'Which city?')
      else yield text(`${said}, after ${messages.length - 1} messages: ${messages[1]?.content}`)
    }),
  )
  const heard = await (await client.stream('weather')).all()
  expect(statesIn(heard)).toEqual(['SUBMITTED', 'WORKING', 'INPUT_REQUIRED'])
  const [task] = (await client.list({ includeArtifacts: true })).tasks
  expect(task?.status.message?.parts).toEqual([{ text: 'Which city?' }])
  expect(task?.artifacts).toBeUndefined()
  expect(streamedText(heard)).toBe('')
  // Who subscribes to a task that waits is told so, and nothing more is to come.
  const joined = await (await client.subscribe(task?.id ?? '')).all()
  expect(joined).toEqual([{ id: undefined, event: { task: { ...task } } }])
  const done = await client.task({ message: { taskId: task?.id ?? '', parts: [{ text: 'Oslo' }] } })
  expect(textOf(done)).toBe('Oslo, after 2 messages: Which city?')
  expect(done.status.state).toBe('TASK_STATE_COMPLETED')
})

verifies('a2a-1.0.input-required', 'what an agent streamed before it asked stays in the task', async () => {
  const { client } = await serveEngine(
    answering(async function* () {
      yield text('Which')
      yield text(' one?')
      yield stop('input_required')
    }),
  )
  const heard = await (await client.stream('x')).all()
  expect(streamedText(heard)).toBe('Which one?')
  const [task] = (await client.list({ includeArtifacts: true })).tasks
  expect(task?.status.message?.parts).toEqual([{ text: 'Which one?' }])
  expect(task && textOf(task)).toBe('Which one?')
})

verifies('a2a-1.0.task-rejected', 'an agent may reject a task', async () => {
  const { client } = await serveEngine(
    answering(async function* () {
      yield stop('rejected', 'Not my job')
    }),
  )
  const task = await client.task('x')
  expect(task.status).toMatchObject({ state: 'TASK_STATE_REJECTED', message: { parts: [{ text: 'Not my job' }] } })
  expect(task.artifacts).toBeUndefined()
  expect(await client.cancel(task.id)).toMatchObject({ error: { reason: 'TASK_NOT_CANCELABLE' } })
})

const signingIn = answering(async function* (said) {
  if (said !== 'done') yield stop('auth_required', 'Sign in at https://example.com')
  else yield text('Thank you')
})

verifies('a2a-1.0.auth-required', 'a stream stays open until the task goes on', async () => {
  const { client } = await serveEngine(signingIn)
  const stream = await client.stream('go')
  await stream.until(() => statesIn(stream.heard).at(-1) === 'AUTH_REQUIRED')
  const [task] = (await client.list()).tasks
  const joined = await client.subscribe(task?.id ?? '')
  await joined.next()
  const heard = [stream.all(), joined.all()]
  const done = await client.task({ message: { taskId: task?.id ?? '', parts: [{ text: 'done' }] } })
  expect(textOf(done)).toBe('Thank you')
  for (const all of await Promise.all(heard)) {
    expect(statesIn(all).slice(-3)).toEqual(['AUTH_REQUIRED', 'WORKING', 'COMPLETED'])
    expect(streamedText(all)).toBe('Thank you')
  }
})

verifies('a2a-1.0.auth-required', 'or until it is cancelled', async () => {
  const { client } = await serveEngine(signingIn)
  const stream = await client.stream('go')
  await stream.until(() => statesIn(stream.heard).at(-1) === 'AUTH_REQUIRED')
  const [task] = (await client.list()).tasks
  await client.cancel(task?.id ?? '')
  expect(statesIn(await stream.all())).toEqual(['SUBMITTED', 'WORKING', 'AUTH_REQUIRED', 'CANCELED'])
  const rest = await (await client.subscribe(task?.id ?? '', stream.heard.at(-2)?.id)).all()
  expect(statesIn(rest)).toEqual(['CANCELED'])
  expect(await (await client.subscribe(task?.id ?? '', stream.heard.at(-1)?.id)).all()).toEqual([])
})

verifies('a2a-1.0.task-cancel', 'a task that waits for an answer is cancelled, and its agent is told', async () => {
  let ended: () => void = () => undefined
  const left = new Promise<void>((resolve) => (ended = resolve))
  const { client } = await serveEngine(
    answering(async function* (_, turn) {
      try {
        yield text('?')
        await turn.ask('tool.call', { name: 't', arguments: '{}' })
      } finally {
        ended()
      }
    }),
  )
  const { id } = await client.task('go')
  const cancelled = await client.cancel(id)
  expect(cancelled.status.state).toBe('TASK_STATE_CANCELED')
  expect(textOf(cancelled)).toBe('?')
  await left
  expect(await client.send({ message: { taskId: id } })).toMatchObject({ error: { reason: 'UNSUPPORTED_OPERATION' } })
  expect(await client.cancel(id)).toMatchObject({ error: { reason: 'TASK_NOT_CANCELABLE' } })
  expect((await client.get(id)).status).toEqual(cancelled.status)
})

test('of two answers to one question the first one wins, and the other is told', async () => {
  const { client } = await serveEngine(calling)
  const { id } = await client.task('Paris')
  const answers = await Promise.all(
    ['one', 'two', 'three'].map((said) => client.send({ message: { taskId: id, parts: [{ text: said }] } })),
  )
  const done = answers.filter((answer) => 'task' in answer)
  expect(done).toHaveLength(1)
  for (const answer of answers) if (!('task' in answer)) expect(answer).toMatchObject({ error: { reason: 'UNSUPPORTED_OPERATION' } })
  expect((await client.get(id)).history).toHaveLength(3)
})

verifies('a2a-1.0.task-subscribe', 'who asks for it is kept while the task waits for its client', async () => {
  const { client } = await serveEngine(calling)
  const { id } = await client.task('Paris')
  const stream = await client.subscribe(id, undefined, { 'x-stays': 'yes' })
  await stream.next()
  await client.task({ message: { taskId: id, parts: [{ text: 'sunny' }] } })
  expect(statesIn(await stream.all())).toEqual(['INPUT_REQUIRED', 'WORKING', 'COMPLETED'])
  expect(streamedText(stream.heard)).toBe('Looking. |It is sunny.')
})

test('a stream is resumed over an answer', async () => {
  const { client } = await serveEngine(calling)
  const first = await (await client.stream('Paris')).all()
  const event = first[0]?.event
  const id = event && 'task' in event ? event.task.id : ''
  await client.task({ message: { taskId: id, parts: [{ text: 'sunny' }] } })
  const rest = await (await client.subscribe(id, first[2]?.id)).all()
  expect(statesIn(rest)).toEqual(['INPUT_REQUIRED', 'WORKING', 'COMPLETED'])
  expect(streamedText([...first.slice(0, 3), ...rest])).toBe('Looking. |It is sunny.')
})

test('whoever is told of a question can answer it at once, also while the disk is slow', async () => {
  const onHost = ({ store }: Host): void => {
    const batch = store.batch.bind(store)
    store.batch = async (operations, options) => {
      if (JSON.stringify(operations).includes('INPUT_REQUIRED')) await new Promise((resolve) => setTimeout(resolve, 200))
      return batch(operations, options)
    }
  }
  const { client } = await serveEngine(calling, { engine: { onHost } })
  const { id } = await client.task({ message: { parts: [{ text: 'Paris' }] }, returnImmediately: true })
  while ((await client.get(id)).status.state !== 'TASK_STATE_INPUT_REQUIRED');
  const task = await client.task({ message: { taskId: id, parts: [{ text: 'sunny' }] } })
  expect(textOf(task)).toBe('Looking. |It is sunny.')
})
