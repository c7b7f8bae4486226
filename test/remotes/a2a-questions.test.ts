import { expect, test } from 'vitest'
import { ask } from '../openai/support.ts'
import { say, textOf } from '../support/talk.ts'
import { verifies } from '../support/verifies.ts'
import { behind, chunk } from './a2a/peer.ts'
import { v03JsonRpc } from './a2a/v03.ts'
import { v1JsonRpc } from './a2a/v1.ts'
import type { Call, Reply, Said, Wire } from './a2a/wire.ts'
import { begin } from './plain.ts'

const DOUBLE = { type: 'function', function: { name: 'double', parameters: { type: 'object', properties: { n: { type: 'number' } } } } }
const call = (id: string, n: number) => ({ data: { type: 'tool.call', call_id: id, name: 'double', arguments: `{"n":${n}}` } })

/** Asks, and then says what it was answered. */
function asking(question: Said): (call: Call, reply: Reply) => void {
  return ({ op, message, texts }, reply) => {
    if (op === 'cancel') return reply.whole({ task: 'canceled' })
    const given = (message['parts'] as { data?: unknown }[]).flatMap(({ data }) => data ?? [])
    const paid = message['metadata']?.['x402.payment.payload']
    if (given.length === 0 && !paid) reply.tell({ task: 'working' }, { status: 'input-required', said: question })
    else reply.tell({ task: 'working' }, chunk(JSON.stringify(paid ? [texts, message['metadata']] : given), false), { status: 'completed' })
    reply.end()
  }
}

for (const wire of [v1JsonRpc, v03JsonRpc] satisfies Wire[]) {
  verifies(
    'a2a-remote.follow-up',
    `${wire.name}: calls of the client's tools are put to it together, and answered on the same task`,
    async () => {
      const { client, there } = await behind(wire, asking({ parts: [{ text: 'Run it' }, call('c1', 1), call('c2', 2)] }))
      const answer = await begin(client, 'go')
      const [one, two] = [await client.next('tool.call'), await client.next('tool.call')]
      expect(one).toMatchObject({ name: 'double', arguments: '{"n":1}' })
      await client.send({ type: 'tool.result', call_id: two['call_id'], result: '4', is_error: true })
      await client.send({ type: 'tool.result', call_id: one['call_id'], result: '2' })
      expect(JSON.parse(textOf(await answer.end()))).toEqual([
        { type: 'tool.result', call_id: 'c1', result: '2' },
        { type: 'tool.result', call_id: 'c2', result: '4', is_error: true },
      ])
      expect(there.calls).toMatchObject([{ op: 'stream' }, { op: 'stream', taskId: 'task-1', contextId: 'context-1' }])
    },
  )

  test(`${wire.name}: approvals are asked here`, async () => {
    const request = { type: 'x.approval.request', approval_id: 'a1', message: 'Delete it?' }
    const { client } = await behind(wire, asking({ parts: [{ text: 'Delete it?' }, { data: request }] }))
    const answer = await begin(client, 'go')
    const asked = await client.next('x.approval.request')
    expect(asked).toMatchObject({ message: 'Delete it?' })
    await client.send({ type: 'x.approval.response', approval_id: asked['approval_id'], approved: true, reason: 'fine' })
    expect(JSON.parse(textOf(await answer.end()))).toEqual([
      { type: 'x.approval.response', approval_id: 'a1', approved: true, reason: 'fine' },
    ])
  })
}

test('payments are asked here, as another uamp server asks them', async () => {
  const requirements = { amount: '0.01', currency: 'USD' }
  const { client } = await behind(v1JsonRpc, asking({ parts: [{ data: { type: 'payment.required', requirements } }] }))
  const answer = await begin(client, 'go')
  expect(await client.next('payment.required')).toMatchObject({ requirements })
  await client.send({ type: 'payment.submit', payment: { scheme: 'token', token: 't' } })
  expect(JSON.parse(textOf(await answer.end()))).toEqual([{ type: 'payment.submit', payment: { scheme: 'token', token: 't' } }])
})

test('and as the x402 extension has them', async () => {
  const accepts = [{ scheme: 'exact', network: 'base', asset: 'USDC', payTo: '0x1', maxAmountRequired: '48', description: 'A picture' }]
  const metadata = { 'x402.payment.status': 'payment-required', 'x402.payment.required': { x402Version: 1, accepts } }
  const { client } = await behind(v1JsonRpc, asking({ parts: [{ text: 'Pay' }], metadata }))
  const answer = await begin(client, 'go')
  expect(await client.next('payment.required')).toMatchObject({
    requirements: {
      amount: '48',
      currency: 'USDC',
      reason: 'A picture',
      schemes: [{ scheme: 'exact', network: 'base', address: '0x1', max_amount: '48' }],
    },
    extra: { x402: { x402Version: 1, accepts } },
  })
  const proof = { x402Version: 1, scheme: 'exact', network: 'base', payload: { signature: '0x2' } }
  await client.send({ type: 'payment.submit', payment: { scheme: 'exact', proof } })
  expect(JSON.parse(textOf(await answer.end()))).toEqual([
    ['Payment submitted'],
    { 'x402.payment.status': 'payment-submitted', 'x402.payment.payload': proof },
  ])
})

test('over completions the call goes on to the client, and the next request has its result', async () => {
  const { here, there } = await behind(v1JsonRpc, asking({ parts: [call('c1', 4)] }))
  const url = `${here.url}/v1/chat/completions`
  const messages = [{ role: 'user', content: 'go' }]
  const first = await ask(url, { messages, tools: [DOUBLE] })
  const { message, finish_reason } = first.body.choices[0]
  expect(finish_reason).toBe('tool_calls')
  expect(message.tool_calls).toMatchObject([{ function: { name: 'double', arguments: '{"n":4}' } }])
  // Nobody can answer that task any more.
  await expect.poll(() => there.of('cancel').length).toBe(1)
  const result = { role: 'tool', tool_call_id: message.tool_calls[0].id, content: '8' }
  const second = await ask(url, { messages: [...messages, message, result], tools: [DOUBLE] })
  expect(JSON.parse(second.body.choices[0].message.content)).toEqual([{ type: 'tool.result', call_id: 'c1', result: '8' }])
})

test('over Responses the task waits for the answer that the next request brings', async () => {
  const { here, there } = await behind(v1JsonRpc, asking({ parts: [call('c1', 4)] }))
  const url = `${here.url}/v1/responses`
  const tools = [{ type: 'function', name: 'double', parameters: DOUBLE.function.parameters }]
  const first = await ask(url, { model: 'far', input: 'go', tools })
  const asked = first.body.output.find(({ type }: { type: string }) => type === 'function_call')
  expect(asked).toMatchObject({ name: 'double', arguments: '{"n":4}' })
  const input = [{ type: 'function_call_output', call_id: asked.call_id, output: '8' }]
  const second = await ask(url, { model: 'far', previous_response_id: first.body.id, input, tools })
  expect(JSON.parse(second.body.output.at(-1).content[0].text)).toEqual([{ type: 'tool.result', call_id: 'c1', result: '8' }])
  expect(there.calls.map(({ op, taskId }) => [op, taskId])).toEqual([
    ['stream', undefined],
    ['stream', 'task-1'],
  ])
})

test('a cancel while it waits for an answer cancels the task', async () => {
  const { client, there } = await behind(v1JsonRpc, asking({ parts: [call('c1', 4)] }))
  await begin(client, 'go')
  await client.next('tool.call')
  await client.send({ type: 'response.cancel' })
  await client.next('response.cancelled')
  await expect.poll(() => there.of('cancel').map(({ taskId }) => taskId)).toEqual(['task-1'])
})

verifies('a2a-remote.extension', 'an extension is asked for where the card lists it, and its events are passed on', async () => {
  const uri = 'https://uamp.dev/a2a/events/v1'
  const said = (data: object) => ({ parts: [{ data }] })
  const answer = (_: Call, reply: Reply): void => {
    const write = (data: object): void => {
      const status = {
        state: 'TASK_STATE_WORKING',
        message: { messageId: crypto.randomUUID(), role: 'ROLE_AGENT', ...said(data), extensions: [uri] },
      }
      const result = { statusUpdate: { taskId: 'task-1', contextId: 'context-1', status } }
      reply.response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', id: 1, result })}\n\n`)
    }
    reply.tell({ task: 'working' })
    write({ type: 'thinking', content: 'Hm', is_delta: true })
    write({ type: 'tool_call', tool_call: { id: 'c1', name: 'add', arguments: '{}' } })
    write({ type: 'tool_result', tool_result: { call_id: 'c1', result: '3' } })
    write({ type: 'usage.delta', delta: { input_tokens: 1, output_tokens: 2 } })
    write({ type: 'session.end', reason: 'not its to say' })
    write({ type: 'of.its.own' })
    reply.tell(chunk('Three', false), { status: 'completed' })
    reply.end()
  }
  const { client, there } = await behind(v1JsonRpc, answer, {
    card: (card) => ({ ...card, capabilities: { streaming: true, extensions: [{ uri }] } }),
  })
  const events = await say(client, 'add')
  expect(there.calls[0]?.request.headers['a2a-extensions']).toBe(uri)
  expect(events.at(-1)?.['response']).toMatchObject({
    output: [{ type: 'thinking', thinking: 'Hm' }, { type: 'tool_call' }, { type: 'tool_result' }, { type: 'text', text: 'Three' }],
    usage: { input_tokens: 1, output_tokens: 2 },
  })
  const plain = await behind(v1JsonRpc, answer)
  await say(plain.client, 'add')
  expect(plain.there.calls[0]?.request.headers).not.toHaveProperty('a2a-extensions')
})
