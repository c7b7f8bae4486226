/** Whoever reads a refusal learns what is wanted, what was wrong with their payment, and what to do. */
import { expect, test } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { coin } from '../support/money.ts'
import { startServer } from '../support/server.ts'

const PAY = { messages: [{ role: 'user', content: '/pay 0.02' }], model: 'demo' }
const RUN = { threadId: 't', runId: 'r', messages: [{ id: 'm', role: 'user', content: '/pay 0.02' }], tools: [], context: [], state: {} }
const TASK = { message: { role: 'user', parts: [{ type: 'text', text: '/pay 0.02' }] } }
const HOW = 'Payment required: 0.02 USD (The demo wants to be paid). Send the request again with a payment token in the header X-PAYMENT'

async function start() {
  const server = await startServer(demo())
  const post = async (path: string, body: object, headers: Record<string, string> = {}) => {
    const all = { 'content-type': 'application/json', ...headers }
    const answer = await fetch(`${server.url}${path}`, { method: 'POST', body: JSON.stringify(body), headers: all })
    return (await answer.json()) as { error: { message: string }; uamp?: unknown; result?: { task: { status: { message: object } } } }
  }
  const why = async (payment: string) => (await post('/v1/chat/completions', PAY, { 'x-payment': payment })).error.message
  return { server, post, why }
}

test.each([
  ['/v1/chat/completions', PAY],
  ['/v1/responses', { model: 'demo', input: '/pay 0.02' }],
  ['/ag-ui', RUN],
])('who has not paid is told how much, what for, and how: %s', async (path, body) => {
  const { post } = await start()
  expect((await post(path, body)).error.message).toBe(HOW)
})

test('a task that was not paid for says how a new one is paid for', async () => {
  const { server } = await start()
  const headers = { 'content-type': 'application/json' }
  const answer = await fetch(`${server.url}/tasks`, { method: 'POST', body: JSON.stringify(TASK), headers })
  expect(await answer.text()).toContain('(The demo wants to be paid). Send a new task with a payment token in the header X-PAYMENT')
})

test('a payment that was refused is told with what was wrong with it', async () => {
  const { server, why } = await start()
  const wanted = 'Payment required: 0.02 USD (The demo wants to be paid). The payment was refused: '
  expect(await why('ptok_1')).toBe(`${wanted}The payment token is not one of this server: send the text of a token, and not its id`)
  expect(await why(await coin(server, '1', { agents: ['dmeo', 'poet'] }))).toBe(
    `${wanted}The payment token pays "dmeo", "poet", and not "demo"`,
  )
  expect(await why(await coin(server, '0.01'))).toBe(`${wanted}The payment token holds 0.01 USD, and 0.02 are needed`)
  expect(await why(await coin(server, '1', { currency: 'EUR' }))).toBe(`${wanted}The payment token holds EUR, and the price is in USD`)
})

test('the ways to pay keep the reason in its own field, so that a wallet shows it alone', async () => {
  const { post } = await start()
  expect(await post('/v1/chat/completions', PAY)).toMatchObject({ error: { accepts: [{ reason: 'The demo wants to be paid' }] } })
})

test('a payment token in the place of a key is named as what it is', async () => {
  const { server, post } = await start()
  const { error } = await post('/v1/chat/completions', PAY, { authorization: `Bearer ${await coin(server, '1')}` })
  expect(error.message).toContain('This is a payment token: send it in the header X-PAYMENT')
})

test('a completion in one piece says what was paid, as a streamed one does', async () => {
  const { server, post } = await start()
  const headers = { 'x-payment': await coin(server, '1') }
  const payments = [{ payment_id: expect.stringMatching(/^pay_/) as unknown, scheme: 'token', amount: '0.02', currency: 'USD' }]
  expect(await post('/v1/chat/completions', PAY, headers)).toMatchObject({ uamp: { payments } })
  const two = await post('/v1/chat/completions', { ...PAY, n: 2 }, headers)
  expect(two.uamp).toEqual({ payments: [...payments, ...payments] })
})

test('an offer of A2A holds as long as the agent waits', async () => {
  const { post } = await start()
  const message = { messageId: 'm', role: 'ROLE_USER', parts: [{ text: '/pay 0.02' }] }
  const { result } = await post('/a2a', { jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message } }, { 'a2a-version': '1.0' })
  const offer = (result?.task.status.message ?? {}) as {
    metadata: { 'x402.payment.required': { accepts: [{ maxTimeoutSeconds: number }] } }
  }
  expect(offer.metadata['x402.payment.required'].accepts[0].maxTimeoutSeconds).toBeGreaterThan(200)
})
