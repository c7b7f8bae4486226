import { expect, test } from 'vitest'
import { begin } from '../../test/remotes/plain.ts'
import { startServer } from '../../test/support/server.ts'
import { textOf } from '../../test/support/talk.ts'
import { overWebSocket, type Wire } from '../../test/support/wire.ts'
import { ClientAnswers, offeredBy, type ClientAnswersOptions } from './client-answers.ts'
import { defineAgent } from '../core/agent-kit/define-agent.ts'
import { text } from '../core/agent-kit/drafts.ts'
import type { Turn } from '../core/ports/agent.ts'

const PICK = { type: 'function', function: { name: 'pick', description: 'Picks', parameters: { type: 'object', properties: {} } } }
const CALL = { id: 'c1', name: 'pick', arguments: '{}' }

type Put = (client: ClientAnswers) => Promise<unknown>

/** A client of an agent that puts this to it, and says what came of it. */
async function asked(put: Put, options: (turn: Turn) => ClientAnswersOptions = () => ({})): Promise<Wire> {
  const agent = defineAgent('asker', async function* (turn) {
    yield text(JSON.stringify(await put(new ClientAnswers(turn, options(turn)))))
  })
  const wire = await overWebSocket((await startServer(agent)).url)
  await wire.open({ session: { modalities: ['text'], tools: [PICK] } })
  return wire
}

const told = async (answer: Awaited<ReturnType<typeof begin>>): Promise<unknown> => JSON.parse(textOf(await answer.end()))

test('a result, by the id of its call', async () => {
  const wire = await asked((client) => client.result(CALL))
  const answer = await begin(wire, 'go')
  expect(await wire.next('tool.call')).toMatchObject({ call_id: 'c1', name: 'pick', arguments: '{}' })
  await wire.send({ type: 'tool.result', call_id: 'c1', result: 'this one' })
  expect(await told(answer)).toEqual({ call_id: 'c1', result: 'this one', status: 'completed', is_error: false })
})

test('a tool that was not offered fails, and nobody is asked', async () => {
  const wire = await asked(
    (client) => client.result({ ...CALL, name: 'other' }),
    (turn) => ({ offered: offeredBy(turn) }),
  )
  expect(await told(await begin(wire, 'go'))).toMatchObject({ call_id: 'c1', status: 'failed', is_error: true })
  expect(wire.heard.some(({ type }) => type === 'tool.call')).toBe(false)
})

test('questions of another uamp server are answered by events of it', async () => {
  const wire = await asked((client) =>
    Promise.all([
      client.to({ type: 'tool.call', call_id: 'c1', name: 'pick', arguments: '{}' }),
      client.to({ type: 'x.approval.request', approval_id: 'a1', message: 'Really?' }),
      client.to({ type: 'payment.required', requirements: { amount: '1', currency: 'USD' } }),
    ]),
  )
  const answer = await begin(wire, 'go')
  await wire.next('tool.call')
  await wire.send({ type: 'tool.result', call_id: 'c1', result: 'broken', is_error: true })
  expect(await wire.next('x.approval.request')).toMatchObject({ approval_id: 'a1', message: 'Really?' })
  await wire.send({ type: 'x.approval.response', approval_id: 'a1', approved: false, reason: 'no' })
  await wire.next('payment.required')
  await wire.send({ type: 'payment.submit', payment: { scheme: 'token', token: 'coin' } })
  expect(await told(answer)).toEqual([
    { type: 'tool.result', call_id: 'c1', result: 'broken', is_error: true },
    { type: 'x.approval.response', approval_id: 'a1', approved: false, reason: 'no' },
    { type: 'payment.submit', payment: { scheme: 'token', token: 'coin' } },
  ])
})

test('the same question twice is two questions', async () => {
  const question = { message: 'Really?' }
  const wire = await asked((client) => Promise.all([client.decision(question), client.decision(question)]))
  const answer = await begin(wire, 'go')
  const first = await wire.next('x.approval.request')
  await wire.send({ type: 'x.approval.response', approval_id: first['approval_id'], approved: true, option: 'ever' })
  const second = await wire.next((event) => event.type === 'x.approval.request' && event !== first)
  await wire.send({ type: 'x.approval.response', approval_id: second['approval_id'], approved: false })
  expect(await told(answer)).toEqual([{ approved: true, option: 'ever' }, { approved: false }])
})
