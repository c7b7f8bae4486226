/** What each specification says of payments, where it takes one line. The whole of it is in test/contract/payments. */
import { describe, expect } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { text } from '../../src/core/agent-kit/drafts.ts'
import { paid as acpPaid } from '../acp/agents.ts'
import { Client, overStdio } from '../acp/wire.ts'
import { post } from '../ag-ui/wire.ts'
import { OmniaClient } from '../omnia/omnia-client.ts'
import { connect } from '../openai/realtime-wire.ts'
import { ask, user } from '../openai/support.ts'
import { coin, expiredCoin, left } from '../support/money.ts'
import { startServer } from '../support/server.ts'
import { textOf } from '../support/talk.ts'
import { verifies } from '../support/verifies.ts'
import { overWebSocket, type Wire } from '../support/wire.ts'

/** Asks to be paid, and answers when it is. */
const shop = defineAgent('shop', async function* (turn) {
  await turn.ask('payment.required', { requirements: { amount: '0.01', currency: 'USD' } })
  yield text('Thank you')
})

/** What nobody would take for money. */
const WORTHLESS = 'worthless'

describe('UAMP events', () => {
  /** A client of the shop, which has said hello, and has a token that pays. */
  async function asked(create: object = {}) {
    const server = await startServer(shop)
    const token = await coin(server, '1')
    const wire = await overWebSocket(server.url)
    await wire.open(create)
    await hello(wire)
    return { server, wire, token }
  }

  async function hello(wire: Wire, input: object = {}): Promise<void> {
    await wire.send({ type: 'input.text', text: 'hello', ...input })
    await wire.send({ type: 'response.create' })
  }

  const pays = (wire: Wire, token: string) => wire.send({ type: 'payment.submit', payment: { scheme: 'token', token } })
  const types = ({ heard }: Wire): string[] => heard.map(({ type }) => type).filter((type) => /^(payment\.|response\.d)/.test(type))

  verifies('uamp:payment:required', 'an agent that wants to be paid says so, and waits', async () => {
    const { wire } = await asked()
    expect(await wire.next('payment.required')).toMatchObject({ requirements: { amount: '0.01', currency: 'USD' } })
    expect(types(wire)).toEqual(['payment.required'])
  })
  verifies(
    ['uamp:payment:submit', 'uamp:payment:accepted', 'uamp:payment:balance'],
    'a payment is accepted once, the answer goes on, and the balance follows it',
    async () => {
      const { wire, token } = await asked()
      await wire.next('payment.required')
      await pays(wire, token)
      expect(await wire.next('payment.balance')).toMatchObject({ balance: '0.99', currency: 'USD' })
      expect(types(wire)).toEqual(['payment.required', 'payment.accepted', 'response.delta', 'response.done', 'payment.balance'])
    },
  )
  verifies(
    ['uamp:payment:error-codes', 'uamp:payment:retry'],
    'each payment that is not taken has a code, and the next one is',
    async () => {
      const { server, wire, token } = await asked()
      const bad = [
        [await expiredCoin(server), 'token_expired'],
        [WORTHLESS, 'token_invalid'],
        [await coin(server, '0.001'), 'insufficient_balance'],
      ] as const
      for (const [given, code] of bad) {
        await wire.next('payment.required')
        await pays(wire, given)
        expect(await wire.next('payment.error')).toMatchObject({ code, can_retry: true })
      }
      await wire.next('payment.required')
      await pays(wire, token)
      await wire.next('response.done')
    },
  )
  verifies('uamp:payment:session-token', 'the token of a session pays for its responses, and a worthless one does not', async () => {
    const server = await startServer(shop)
    const wire = await overWebSocket(server.url)
    await wire.open({ payment_token: await coin(server, '1') })
    for (const balance of ['0.99', '0.98']) {
      await hello(wire)
      expect(await wire.next('payment.balance')).toMatchObject({ balance })
    }
    const { wire: other } = await asked({ payment_token: WORTHLESS })
    await other.next('payment.error')
  })
  verifies('uamp:payment:update-token', 'the token of an update takes the place of the one before', async () => {
    const server = await startServer(shop)
    const [before, after] = [await coin(server, '1'), await coin(server, '1')]
    const wire = await overWebSocket(server.url)
    const session_id = await wire.open({ payment_token: before })
    await wire.send({ type: 'session.update', session_id, session: {}, payment_token: after })
    await hello(wire)
    await wire.next('response.done')
    expect([await left(server, before), await left(server, after)]).toEqual(['1.00', '0.99'])
  })
  verifies('uamp:payment:input-token', 'the token of an input pays for that interaction', async () => {
    const server = await startServer(shop)
    const [ofSession, ofInput] = [await coin(server, '1'), await coin(server, '1')]
    const wire = await overWebSocket(server.url)
    await wire.open({ payment_token: ofSession })
    for (const input of [{ payment_token: ofInput }, {}]) {
      await hello(wire, input)
      await wire.next('response.done')
    }
    expect([await left(server, ofSession), await left(server, ofInput)]).toEqual(['0.99', '0.99'])
  })
  verifies('uamp-transports.topup', 'a top-up in mid-answer says so, and the answer goes on', async () => {
    const server = await startServer(demo())
    const wire = await overWebSocket(server.url)
    await wire.open()
    await wire.send({ type: 'input.text', text: '/topup 0.05' })
    await wire.send({ type: 'response.create' })
    expect(await wire.next('payment.required')).toMatchObject({ requirements: { amount: '0.05' }, extra: { action: 'topup' } })
    await pays(wire, await coin(server, '1'))
    await wire.next('response.done')
    expect(textOf(wire.heard)).toBe('This is the first half of the answer. Paid 0.05 USD: this is the second half.')
  })
})

verifies('openai-completions.payment', 'a worthless X-PAYMENT is 402', async () => {
  const { url } = await startServer(shop)
  expect((await ask(`${url}/v1/chat/completions`, { messages: [user('x')] }, { 'x-payment': WORTHLESS })).status).toBe(402)
})
verifies('openai-responses.payment', 'a worthless X-PAYMENT is 402', async () => {
  const { url } = await startServer(shop)
  expect((await ask(`${url}/v1/responses`, { input: 'x' }, { 'x-payment': WORTHLESS })).status).toBe(402)
})
verifies('openai-realtime.payment', 'a worthless payment is a payment.error', async () => {
  const server = await startServer(shop)
  const { url } = server
  const wire = await connect(url, { path: '/realtime' })
  wire.send({ type: 'response.create' })
  await wire.next('payment.required')
  wire.send({ type: 'payment.submit', payment: { scheme: 'token', token: WORTHLESS } })
  expect(await wire.next('payment.error')).toMatchObject({ code: 'token_invalid' })
  wire.send({ type: 'payment.submit', payment: { scheme: 'token', token: await coin(server, '1') } })
  expect((await wire.next('response.done'))['response'].status).toBe('completed')
})
verifies('a2a-1.0.payment-input', 'a task asks again after a worthless payment', async () => {
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
verifies('uamp-tasks.payment-retry', 'a task with a worthless X-PAYMENT fails', async () => {
  const { url } = await startServer(shop)
  const body = JSON.stringify({ message: { role: 'user', parts: [{ type: 'text', text: 'hello' }] } })
  const headers = { 'content-type': 'application/json', 'x-payment': WORTHLESS }
  const response = await fetch(`${url}/tasks`, { method: 'POST', headers, body })
  expect(await response.text()).toContain('payment_required')
})
verifies('acp-uamp.payment', 'a prompt with a worthless token fails', async () => {
  const client = await Client.connect(overStdio([acpPaid]))
  await client.initialize()
  const session = await client.open()
  expect((await client.say(session, 'one', { payment_token: WORTHLESS }))['error']?.code).toBe(-32402)
})
verifies('ag-ui.payment', 'a run with a worthless X-PAYMENT is 402', async () => {
  const { url } = await startServer(shop)
  const response = await post(url, 'hello', { headers: { 'x-payment': WORTHLESS } })
  await response.text()
  expect(response.status).toBe(402)
})
verifies('omnia.payment', 'a message with a worthless token is PAYMENT_REQUIRED', async () => {
  const { url } = await startServer(defineAgent('demo', shop.run))
  const client = await OmniaClient.open(url)
  const message = { type: 'message', session_id: client.sessionId, content: 'hello' }
  await client.fails(message)
  const paying = client.ask({ ...message, metadata: { payment_token: WORTHLESS } }, 'done')
  const told = await paying.then(({ content }) => content as string).catch(({ message: why }: Error) => why)
  expect(told).toContain('PAYMENT_REQUIRED')
})
