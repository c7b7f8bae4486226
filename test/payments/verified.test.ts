/** What each specification says of payments, where it takes one line. The whole of it is in test/contract/payments. */
import { describe, expect } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { text } from '../../src/core/agent-kit/drafts.ts'
import { paid as acpPaid } from '../acp/agents.ts'
import { Client, overSocket } from '../acp/wire.ts'
import { post } from '../ag-ui/wire.ts'
import { OmniaClient } from '../omnia/omnia-client.ts'
import { connect } from '../openai/realtime-wire.ts'
import { ask, user } from '../openai/support.ts'
import { coin, expiredCoin, left, TRUSTING } from '../support/money.ts'
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

/** A message of the first A2A. */
const early = { role: 'user', parts: [{ type: 'text', text: 'hello' }] }

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
    const { requirements } = await wire.next('payment.required')
    expect(requirements).toMatchObject({ amount: '0.01', currency: 'USD', schemes: [{ scheme: 'token', network: 'uamp' }] })
    // Five minutes.
    const seconds = requirements.expires_at - Date.now() / 1000
    expect([seconds > 240, seconds <= 300]).toEqual([true, true])
    // What would follow without a payment would be heard before this.
    await wire.send({ type: 'capabilities.query' })
    await wire.next('capabilities')
    expect(types(wire)).toEqual(['payment.required'])
  })
  verifies('uamp:events:payment.required', 'what an agent wants to be paid by is told as it says it', async () => {
    const wanted = {
      amount: '0.01',
      currency: 'USD',
      schemes: [
        { scheme: 'token', network: 'robutler' },
        { scheme: 'crypto', network: 'base', address: '0x12' },
        { scheme: 'card' },
        { scheme: 'ap2' },
      ],
      reason: 'llm_usage',
      ap2: { mandate_uri: 'https://a.example', credential_types: ['VerifiableCredential'], checkout_session_uri: 'https://b.example' },
    }
    const server = await startServer(
      defineAgent('shop', async function* (turn) {
        await turn.ask('payment.required', { requirements: wanted })
        yield text('Thank you')
      }),
    )
    const wire = await overWebSocket(server.url)
    await wire.open()
    await hello(wire)
    expect((await wire.next('payment.required'))['requirements']).toEqual({ ...wanted, expires_at: expect.any(Number) })
    const { schemes, reason, ...common } = wanted
    const accepts = schemes.map((scheme) => ({ ...common, ...scheme }))
    const { body } = await ask(`${server.url}/v1/chat/completions`, { messages: [user('x')] })
    const message = `Payment required: 0.01 USD (${reason}). Send the request again with a payment token in the header X-PAYMENT`
    expect(body).toMatchObject({ status_code: 402, error: { message }, context: { accepts } })
    const headers = { 'content-type': 'application/json' }
    const task = await fetch(`${server.url}/tasks`, { method: 'POST', headers, body: JSON.stringify({ message: early }) })
    const [, failed = ''] = /task\.failed\ndata: (.*)/.exec(await task.text()) ?? []
    expect(JSON.parse(failed)).toMatchObject({ status: 'failed', code: 'payment_required', status_code: 402, accepts })
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
      const submits = (payment: object) => wire.send({ type: 'payment.submit', payment: { scheme: 'token', ...payment } })
      await wire.next('payment.required')
      await submits({ token, amount: '1e400' })
      expect(await wire.next('payment.error')).toMatchObject({ code: 'payment_failed', can_retry: true })
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
  verifies('uamp:payment:error-codes', 'who has spent the money of a day is told so, and that no other payment will do', async () => {
    const server = await startServer(shop, { payments: { perDay: { USD: '0.015' } } })
    const wire = await overWebSocket(server.url)
    await wire.open({ payment_token: await coin(server, '1') })
    await hello(wire)
    await wire.next('response.done')
    await hello(wire)
    const limited = { code: 'rate_limited', can_retry: false, balance_required: '0.01', balance_current: '0.005' }
    expect(await wire.next('payment.error')).toMatchObject(limited)
    expect(await wire.next('response.error')).toMatchObject({ error: { code: 'payment_required' } })
  })
  verifies('uamp:payment:error-codes', 'a mandate that was revoked is told as that', async () => {
    const authorise = () => ({ refused: 'mandate_revoked', message: 'It was revoked' }) as const
    const { url } = await startServer(shop, { payments: { ...TRUSTING, authorise } })
    const wire = await overWebSocket(url)
    await wire.open()
    await hello(wire)
    expect(await wire.next('payment.error')).toMatchObject({ code: 'mandate_revoked', can_retry: true })
  })
  verifies('uamp:payment:balance', 'a balance that is less than five such answers is low', async () => {
    const server = await startServer(shop)
    const wire = await overWebSocket(server.url)
    await wire.open({ payment_token: await coin(server, '0.06') })
    for (const [balance, isLow] of [
      ['0.05', false],
      ['0.04', true],
    ] as const) {
      await hello(wire)
      const estimated_remaining = Number(balance) * 100
      expect(await wire.next('payment.balance')).toMatchObject({
        balance,
        low_balance_warning: isLow,
        estimated_remaining,
        threshold: '0.05',
      })
    }
  })
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
  verifies('uamp:payment:update-token', 'without a session it is for all of the connection, and those that it opens later', async () => {
    const server = await startServer(shop)
    const [before, after] = [await coin(server, '1'), await coin(server, '1')]
    const wire = await overWebSocket(server.url)
    const sessions = [await wire.open({ payment_token: before }), await wire.open()]
    void wire.send({ type: 'session.update', payment_token: after })
    await wire.next((event) => event.type === 'session.updated' && event['session_id'] === undefined)
    sessions.push(await wire.open())
    for (const session_id of sessions) {
      await wire.send({ type: 'input.text', text: 'hello', session_id })
      await wire.send({ type: 'response.create', session_id })
      await wire.next('response.done')
    }
    expect([await left(server, before), await left(server, after)]).toEqual(['1.00', '0.97'])
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

/** What HTTP says of a request with a worthless payment, and of the same one with one that is worth something. */
async function statuses(path: string, body: object): Promise<readonly number[]> {
  const server = await startServer(shop)
  const token = await coin(server, '1')
  const told: number[] = []
  for (const payment of [WORTHLESS, token]) told.push((await ask(server.url + path, body, { 'x-payment': payment })).status)
  expect(await left(server, token)).toBe('0.99')
  return told
}

verifies('openai-completions.payment', 'a worthless X-PAYMENT is 402, and a good one pays', async () => {
  expect(await statuses('/v1/chat/completions', { messages: [user('x')] })).toEqual([402, 200])
})
verifies('openai-responses.payment', 'a worthless X-PAYMENT is 402, and a good one pays', async () => {
  expect(await statuses('/v1/responses', { input: 'x' })).toEqual([402, 200])
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
verifies('a2a-1.0.payment-input', 'a task asks again after a worthless payment, and goes on with a good one', async () => {
  const server = await startServer(shop)
  const { url } = server
  const send = async (message: object) => {
    const params = { message: { messageId: crypto.randomUUID(), role: 'ROLE_USER', parts: [{ text: 'hello' }], ...message } }
    const { body } = await ask(`${url}/a2a`, { jsonrpc: '2.0', id: 1, method: 'SendMessage', params }, { 'a2a-version': '1.0' })
    return body.result.task
  }
  const { id } = await send({})
  const pays = (payload: string) =>
    send({ taskId: id, metadata: { 'x402.payment.status': 'payment-submitted', 'x402.payment.payload': payload } })
  expect((await pays(WORTHLESS)).status.state).toBe('TASK_STATE_INPUT_REQUIRED')
  const token = await coin(server, '1')
  expect((await pays(token)).status.state).toBe('TASK_STATE_COMPLETED')
  expect(await left(server, token)).toBe('0.99')
})
verifies('uamp-tasks.payment-retry', 'a task with a worthless X-PAYMENT fails, and one with a good one is done', async () => {
  const server = await startServer(shop)
  const token = await coin(server, '1')
  const body = JSON.stringify({ message: early })
  const task = async (payment: string): Promise<string> => {
    const headers = { 'content-type': 'application/json', 'x-payment': payment }
    return (await fetch(`${server.url}/tasks`, { method: 'POST', headers, body })).text()
  }
  expect(await task(WORTHLESS)).toMatch(/event: task\.failed\ndata: .*"payment_required"/)
  expect(await task(token)).toContain('event: task.completed')
  expect(await left(server, token)).toBe('0.99')
})
verifies('acp-uamp.payment', 'a prompt with a worthless token fails, and one with a good one does not', async () => {
  const server = await startServer(acpPaid)
  const client = await Client.connect(overSocket(server.url))
  await client.initialize()
  const session = await client.open()
  expect((await client.say(session, 'one', { payment_token: WORTHLESS }))['error']?.code).toBe(-32402)
  const token = await coin(server, '1')
  expect((await client.say(session, 'one', { payment_token: token }))['result']?.stopReason).toBe('end_turn')
  expect(await left(server, token)).toBe('0.99')
})
verifies('ag-ui.payment', 'a run with a worthless X-PAYMENT is 402, and one with a good one is not', async () => {
  const server = await startServer(shop)
  const token = await coin(server, '1')
  const told: number[] = []
  for (const payment of [WORTHLESS, token]) {
    const response = await post(server.url, 'hello', { headers: { 'x-payment': payment } })
    told.push(response.status)
    await response.text()
  }
  expect([told, await left(server, token)]).toEqual([[402, 200], '0.99'])
})
verifies('omnia.payment', 'a message with a worthless token is PAYMENT_REQUIRED, and one with a good one is answered', async () => {
  const server = await startServer(shop)
  const client = await OmniaClient.open(server.url, { path: '/omnia?agent=shop' })
  const message = { type: 'message', session_id: client.sessionId, content: 'hello' }
  const paying = (payment_token: string) => ({ ...message, metadata: { payment_token } })
  expect(await client.fails(paying(WORTHLESS))).toMatchObject({ code: 'PAYMENT_REQUIRED' })
  const token = await coin(server, '1')
  expect((await client.ask(paying(token), 'done'))['content']).toBe('Thank you')
  expect(await left(server, token)).toBe('0.99')
})
