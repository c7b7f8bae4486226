/** A signed proof of x402 pays on every protocol, wherever that protocol has its payment. */
import { expect } from 'vitest'
import { Client as AcpClient, overSocket } from '../../acp/wire.ts'
import { post } from '../../ag-ui/wire.ts'
import { OmniaClient } from '../../omnia/omnia-client.ts'
import { connect as realtime, says } from '../../openai/realtime-wire.ts'
import { verifies } from '../../support/verifies.ts'
import { isEnd } from '../../support/talk.ts'
import { overWebSocket } from '../../support/wire.ts'
import { earned, encoded, openShop, signed } from './shop.ts'

/** What a client does with a proof, and what it is told at the end. */
type Pays = (url: string, proof: Awaited<ReturnType<typeof signed>>) => Promise<string>

async function overEvents(url: string, create: object, payment?: object): Promise<string> {
  const wire = await overWebSocket(url)
  await wire.open(create)
  await wire.send({ type: 'input.text', text: 'hello' })
  await wire.send({ type: 'response.create' })
  if (payment) {
    await wire.next('payment.required')
    await wire.send({ type: 'payment.submit', payment })
  }
  return (await wire.next((event) => isEnd(event) || event.type === 'payment.error')).type
}

async function overRealtime(url: string, headers: Record<string, string>, payment?: object): Promise<string> {
  const wire = await realtime(url, { path: '/v1/realtime?model=shop', headers })
  wire.send(says('hello'))
  wire.send({ type: 'response.create' })
  if (payment) {
    await wire.next('payment.required')
    wire.send({ type: 'payment.submit', payment })
  }
  return (await wire.next('response.done'))['response'].status as string
}

const WAYS: Readonly<Record<string, Pays>> = {
  'UAMP events, payment.submit': (url, proof) => overEvents(url, {}, { scheme: 'exact', network: 'eip155:84532', proof }),
  'UAMP events, payment_token': (url, proof) => overEvents(url, { payment_token: encoded(proof) }),
  'Realtime, payment.submit': (url, proof) => overRealtime(url, {}, { scheme: 'exact', proof }),
  'Realtime, header': (url, proof) => overRealtime(url, { 'payment-signature': encoded(proof) }),
  async 'A2A, /tasks'(url, proof) {
    const body = JSON.stringify({ message: { role: 'user', parts: [{ type: 'text', text: 'hello' }] } })
    const headers = { 'content-type': 'application/json', 'x-payment': encoded(proof) }
    return (await (await fetch(`${url}/tasks`, { method: 'POST', headers, body })).text()).includes('task.completed')
      ? 'completed'
      : 'failed'
  },
  async 'ACP, payment_token'(url, proof) {
    const client = await AcpClient.connect(overSocket(url))
    await client.initialize()
    const session = await client.open()
    await client.say(session, 'hello')
    const { result, error } = await client.say(session, 'hello', { payment_token: encoded(proof) })
    return (result?.stopReason ?? `error ${error.code}`) as string
  },
  async 'ACP, prompt/submit'(url, proof) {
    const client = await AcpClient.connect(overSocket(url))
    const messages = [{ role: 'user', content: 'hello' }]
    const { result, error } = await client.ask('prompt/submit', { messages, payment_token: encoded(proof) })
    return (result?.status ?? `error ${error.code}`) as string
  },
  async 'AG-UI, header'(url, proof) {
    return (await (await post(url, 'hello', { headers: { 'x-payment': encoded(proof) } })).text()).includes('RUN_FINISHED')
      ? 'done'
      : 'failed'
  },
  async 'AG-UI, forwardedProps'(url, proof) {
    const input = { forwardedProps: { uamp: { payment_token: encoded(proof) } } }
    return (await (await post(url, 'hello', { input })).text()).includes('RUN_FINISHED') ? 'done' : 'failed'
  },
  async 'Omnia, metadata'(url, proof) {
    const client = await OmniaClient.open(url, { path: '/omnia?agent=shop' })
    const message = { type: 'message', session_id: client.sessionId, content: 'hello', metadata: { payment_token: encoded(proof) } }
    return client.ask(message, 'done').then(
      () => 'done',
      ({ message: why }: Error) => why,
    )
  },
}

for (const [name, pays] of Object.entries(WAYS)) {
  verifies('x402.everywhere', `a proof pays: ${name}`, async () => {
    const { url, facilitator, ledger } = await openShop()
    const told = await pays(url, await signed(url))
    expect(told).toMatch(/^(?:response\.done|completed?|done|end_turn)$/)
    expect(facilitator.moved).toHaveLength(1)
    await expect.poll(() => earned({ ledger })).toBe('0.01')
  })
}
