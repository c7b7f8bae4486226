/** Payments are not verified yet: each of these fails because any value is taken for a payment. */
import { describe, expect } from 'vitest'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { text } from '../../src/core/agent-kit/drafts.ts'
import { paid as acpPaid } from '../acp/agents.ts'
import { Client, overStdio } from '../acp/wire.ts'
import { post } from '../ag-ui/wire.ts'
import { OmniaClient } from '../omnia/omnia-client.ts'
import { connect } from '../openai/realtime-wire.ts'
import { ask, user } from '../openai/support.ts'
import { startServer } from '../support/server.ts'
import { isEnd } from '../support/talk.ts'
import { expectedFailure, verifies } from '../support/verifies.ts'
import { overWebSocket, type Heard, type Wire } from '../support/wire.ts'

/** Asks to be paid, and answers when it is. */
const shop = defineAgent('shop', async function* (turn) {
  await turn.ask('payment.required', { requirements: { amount: '0.01', currency: 'USD' } })
  yield text('Thank you')
})

/** What nobody would take for money. */
const WORTHLESS = 'worthless'

describe('UAMP events', () => {
  /** A question to the shop, which wants to be paid for its answer. */
  async function asked(create: object = {}): Promise<Wire> {
    const { url } = await startServer(shop)
    const wire = await overWebSocket(url)
    await wire.open(create)
    await answered(wire)
    return wire
  }

  /** The first word about a payment for an answer, or its end. */
  async function answered(wire: Wire, input: object = {}): Promise<Heard> {
    await wire.send({ type: 'input.text', text: 'hello', ...input })
    await wire.send({ type: 'response.create' })
    return aboutPayment(wire)
  }

  const aboutPayment = (wire: Wire): Promise<Heard> => wire.next((event) => event.type.startsWith('payment.') || isEnd(event))

  /** The next word about a payment, or the end of the response. */
  async function paying(wire: Wire, token: string): Promise<Heard> {
    await wire.send({ type: 'payment.submit', payment: { scheme: 'token', token } })
    return aboutPayment(wire)
  }

  verifies('uamp:payment:required', 'an agent that wants to be paid says so, and waits', async () => {
    const { heard } = await asked()
    expect(heard.at(-1)).toMatchObject({ type: 'payment.required', requirements: { amount: '0.01', currency: 'USD' } })
  })
  expectedFailure('uamp:payment:submit', 'a worthless payment does not let the response go on', async () => {
    expect((await paying(await asked(), WORTHLESS)).type).toBe('payment.error')
  })
  expectedFailure('uamp:payment:accepted', 'a payment is accepted once, before the answer', async () => {
    const { heard } = await asked({ payment_token: WORTHLESS })
    expect(heard.map(({ type }) => type).filter((type) => type === 'payment.accepted')).toHaveLength(1)
  })
  expectedFailure('uamp:payment:balance', 'the balance follows a paid response', async () => {
    const wire = await asked()
    await paying(wire, WORTHLESS)
    await wire.send({ type: 'ping' })
    await wire.next('pong')
    expect(wire.heard.map(({ type }) => type)).toContain('payment.balance')
  })
  expectedFailure('uamp:payment:error-codes', 'a payment that is not taken has a code', async () => {
    expect((await paying(await asked(), WORTHLESS))['code']).toBe('token_invalid')
  })
  expectedFailure('uamp:payment:retry', 'a payment that was not taken can be made again', async () => {
    const wire = await asked()
    expect((await paying(wire, WORTHLESS))['can_retry']).toBe(true)
    expect((await paying(wire, WORTHLESS)).type).toBe('payment.error')
  })
  expectedFailure('uamp:payment:session-token', 'a worthless token of the session does not pay', async () => {
    expect((await asked({ payment_token: WORTHLESS })).heard.map(({ type }) => type)).toContain('payment.error')
  })
  expectedFailure('uamp:payment:update-token', 'the token of an update takes the place of the one before', async () => {
    const { url } = await startServer(shop)
    const wire = await overWebSocket(url)
    const session_id = await wire.open()
    await wire.send({ type: 'session.update', session_id, session: {}, payment_token: WORTHLESS })
    expect((await answered(wire)).type).toBe('payment.error')
  })
  expectedFailure('uamp:payment:input-token', 'the token of an input pays for that interaction', async () => {
    const { url } = await startServer(shop)
    const wire = await overWebSocket(url)
    await wire.open()
    expect((await answered(wire, { payment_token: WORTHLESS })).type).toBe('payment.error')
  })
  expectedFailure('uamp-transports.topup', 'a top-up in mid-answer', async () => {
    const wire = await asked()
    await wire.send({ type: 'payment.submit', payment: { scheme: 'token', token: WORTHLESS } })
    const question = await wire.next((event) => event.type === 'payment.required' || isEnd(event))
    expect(question['extra']).toMatchObject({ action: 'topup' })
  })
})

expectedFailure('openai-completions.payment', 'a worthless X-PAYMENT is 402', async () => {
  const { url } = await startServer(shop)
  expect((await ask(`${url}/v1/chat/completions`, { messages: [user('x')] }, { 'x-payment': WORTHLESS })).status).toBe(402)
})
expectedFailure('openai-responses.payment', 'a worthless X-PAYMENT is 402', async () => {
  const { url } = await startServer(shop)
  expect((await ask(`${url}/v1/responses`, { input: 'x' }, { 'x-payment': WORTHLESS })).status).toBe(402)
})
expectedFailure('openai-realtime.payment', 'a worthless payment is a payment.error', async () => {
  const { url } = await startServer(shop)
  const wire = await connect(url, { path: '/realtime' })
  wire.send({ type: 'response.create' })
  await wire.next('payment.required')
  wire.send({ type: 'payment.submit', payment: { scheme: 'token', token: WORTHLESS } })
  await wire.next('response.done')
  expect(wire.heard.map(({ type }) => type)).toContain('payment.error')
})
expectedFailure('a2a-1.0.payment-input', 'a task asks again after a worthless payment', async () => {
  const { url } = await startServer(shop)
  const send = async (message: object) => {
    const params = { message: { messageId: crypto.randomUUID(), role: 'ROLE_USER', parts: [{ text: 'hello' }], ...message } }
    const { body } = await ask(`${url}/a2a`, { jsonrpc: '2.0', id: 1, method: 'SendMessage', params }, { 'a2a-version': '1.0' })
    return body.result.task
  }
  const { id } = await send({})
  const metadata = { 'x402.payment.status': 'payment-submitted', 'x402.payment.payload': WORTHLESS }
  expect((await send({ taskId: id, metadata })).status.state).toBe('TASK_STATE_INPUT_REQUIRED')
})
expectedFailure('uamp-tasks.payment-retry', 'a task with a worthless X-PAYMENT fails', async () => {
  const { url } = await startServer(shop)
  const body = JSON.stringify({ message: { role: 'user', parts: [{ type: 'text', text: 'hello' }] } })
  const headers = { 'content-type': 'application/json', 'x-payment': WORTHLESS }
  const response = await fetch(`${url}/tasks`, { method: 'POST', headers, body })
  expect(await response.text()).toContain('payment_required')
})
expectedFailure('acp-uamp.payment', 'a prompt with a worthless token fails', async () => {
  const client = await Client.connect(overStdio([acpPaid]))
  await client.initialize()
  const session = await client.open()
  expect((await client.say(session, 'one', { payment_token: WORTHLESS }))['error']?.code).toBe(-32402)
})
expectedFailure('ag-ui.payment', 'a run with a worthless X-PAYMENT is 402', async () => {
  const { url } = await startServer(shop)
  const response = await post(url, 'hello', { headers: { 'x-payment': WORTHLESS } })
  await response.text()
  expect(response.status).toBe(402)
})
expectedFailure('omnia.payment', 'a message with a worthless token is PAYMENT_REQUIRED', async () => {
  const { url } = await startServer(defineAgent('demo', shop.run))
  const client = await OmniaClient.open(url)
  const message = { type: 'message', session_id: client.sessionId, content: 'hello' }
  await client.fails(message)
  const paying = client.ask({ ...message, metadata: { payment_token: WORTHLESS } }, 'done')
  const told = await paying.then(({ content }) => content as string).catch(({ message: why }: Error) => why)
  expect(told).toContain('PAYMENT_REQUIRED')
})
