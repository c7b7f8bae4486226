import { expect, onTestFinished, test } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { budget, connect, tokenWallet, type Wallet } from '../../src/client/node.ts'
import type { AgentPort } from '../../src/core/ports/agent.ts'
import { remoteA2a } from '../../src/remotes/a2a/index.ts'
import { remoteAgUi } from '../../src/remotes/ag-ui/index.ts'
import { remoteAgent } from '../../src/remotes/agent.ts'
import { remoteCompletions } from '../../src/remotes/completions/index.ts'
import { remoteEvents } from '../../src/remotes/events/index.ts'
import { moneyOf } from '../support/ledger-money.ts'
import { startServer } from '../support/server.ts'
import { say, textOf } from '../support/talk.ts'
import { overWebSocket } from '../support/wire.ts'
import { verifies } from '../support/verifies.ts'
import { started } from './acp/started.ts'
import { begin } from './plain.ts'

type Make = (url: string, wallet: Wallet | undefined) => AgentPort

const name = 'far'
const REMOTES: Readonly<Record<string, Make>> = {
  'events over HTTP': (url, wallet) => remoteEvents({ name, url, agent: 'demo', ...(wallet && { wallet }) }),
  'events over WebSocket': (url, wallet) =>
    remoteEvents({ name, url: url.replace('http', 'ws'), agent: 'demo', ...(wallet && { wallet }) }),
  completions: (url, wallet) => remoteCompletions({ name, url: `${url}/v1`, model: 'demo', ...(wallet && { wallet }) }),
  A2A: (url, wallet) => remoteA2a({ name, url: `${url}/agents/demo`, ...(wallet && { wallet }) }),
  'AG-UI': (url, wallet) => remoteAgUi({ name, url: `${url}/agents/demo/ag-ui`, ...(wallet && { wallet }) }),
  'the best protocol': (url, wallet) => remoteAgent({ name, url, agent: 'demo', ...(wallet && { wallet }) }),
}

/** The demo, which wants money, on one server, and on another one the same demo behind a remote. */
async function behind(make: Make, walletFor?: (token: string) => Wallet) {
  const there = await startServer(demo())
  const money = moneyOf(there.ledger)
  const token = await money.token('1')
  const here = await startServer(make(there.url, walletFor?.(token.text)))
  const wire = await overWebSocket(here.url)
  await wire.open()
  return { there, here, money, token, wire }
}

for (const [protocol, make] of Object.entries(REMOTES)) {
  verifies(['remote-pay.wallet', 'remote-pay.told', 'remote-pay.private'], `a wallet pays over ${protocol}`, async () => {
    const { wire, money, token } = await behind(make, (text) => tokenWallet(text))
    const events = await say(wire, '/pay 0.02')
    expect(textOf(events)).toBe('Paid 0.02 USD. Thank you.')
    expect(await money.earned('demo')).toBe('0.02')
    expect(await token.left()).toBe('0.98')
    const { uamp } = events.find(({ type }) => type === 'response.done')?.['response'].extensions
    expect(uamp.paid_to).toMatchObject([{ agent: 'far', scheme: 'token', amount: '0.02', currency: 'USD' }])
    expect(uamp).not.toHaveProperty('payments')
    expect(events.filter(({ type }) => type.startsWith('payment.'))).toEqual([])
    expect(JSON.stringify(wire.heard)).not.toContain(token.text)
  })

  verifies('remote-pay.over', `more than the budget is declined, and the turn says why: ${protocol}`, async () => {
    const { wire, token } = await behind(make, (text) => budget(tokenWallet(text), { perCall: '0.01' }))
    expect((await say(wire, '/pay 0.02')).at(-1)).toMatchObject({
      type: 'response.error',
      error: {
        code: 'payment_required',
        message: '"far" wants 0.02 USD and is not paid: 0.02 USD is more than the budget for an answer, 0.01',
        details: { reason: 'budget_exceeded' },
      },
    })
    expect(await token.left()).toBe('1.00')
    expect(textOf(await say(wire, '/pay 0.01'))).toContain('Thank you')
  })

  verifies('remote-pay.relay', `without a wallet whoever asks pays: ${protocol}`, async () => {
    const { wire, money, here, token } = await behind(make)
    const answer = await begin(wire, '/pay 0.02')
    expect(await wire.next('payment.required')).toMatchObject({ requirements: { amount: '0.02', currency: 'USD' } })
    await wire.send({ type: 'payment.submit', payment: { scheme: 'token', token: token.text } })
    expect(textOf(await answer.end())).toBe('Paid 0.02 USD. Thank you.')
    expect(await money.earned('demo')).toBe('0.02')
    expect(await moneyOf(here.ledger).earned('far')).toBe('0.00')
    const refusing = await begin(wire, '/pay 0.02')
    await wire.next('payment.required')
    await wire.send({ type: 'payment.submit', payment: { scheme: 'declined' } })
    expect((await refusing.end()).at(-1)).toMatchObject({ type: 'response.error', error: { code: 'payment_required' } })
    expect(await money.earned('demo')).toBe('0.02')
  })
}

verifies('remote-pay.wallet', 'a top-up in the middle of an answer', async () => {
  const { wire, token } = await behind(REMOTES['events over HTTP'] as Make, (text) => tokenWallet(text))
  expect(textOf(await say(wire, '/topup 0.03'))).toBe('This is the first half of the answer. Paid 0.03 USD: this is the second half.')
  expect(await token.left()).toBe('0.97')
})

verifies('remote-pay.approval', 'above the limit whoever asks us approves, or does not', async () => {
  const limited = (text: string): Wallet => budget(tokenWallet(text), { perDay: '1', above: { amount: '0.01' } })
  const { wire, token } = await behind(REMOTES['events over HTTP'] as Make, limited)
  const decide = async (approved: boolean) => {
    const answer = await begin(wire, '/pay 0.02')
    const { approval_id, message } = await wire.next('x.approval.request')
    expect(message).toBe('Pay 0.02 USD to demo? The demo wants to be paid')
    await wire.send({ type: 'x.approval.response', approval_id, approved })
    return answer.end()
  }
  expect((await decide(false)).at(-1)).toMatchObject({ error: { message: expect.stringContaining('The payment was not approved') } })
  expect(textOf(await decide(true))).toContain('Thank you')
  expect(await token.left()).toBe('0.98')
})

verifies('remote-pay.told', 'a relayed payment is told as one of our caller, whose budget counts it', async () => {
  const { here, token } = await behind(REMOTES['events over HTTP'] as Make)
  const told: (string | undefined)[] = []
  const wallet: Wallet = { ...tokenWallet(token.text), done: async (_, { charged }) => void told.push(charged) as undefined }
  const client = connect(here.url, { wallet })
  onTestFinished(() => client.close())
  expect(await (await client.session()).say('/pay 0.02')).toContain('Thank you')
  await expect.poll(() => told).toEqual(['0.02'])
})

test('many at once on one wallet stay within the day', async () => {
  const there = await startServer(demo())
  const money = moneyOf(there.ledger)
  const token = await money.token('5')
  const wallet = budget(tokenWallet(token.text), { perDay: '0.1' })
  const here = await startServer(remoteEvents({ name, url: there.url, agent: 'demo', wallet }))
  const client = connect(here.url)
  onTestFinished(() => client.close())
  const ask = async (): Promise<boolean> =>
    (await client.session()).say('/pay 0.01').then(
      () => true,
      () => false,
    )
  const answers = await Promise.all(Array.from({ length: 32 }, ask))
  expect(answers.filter(Boolean)).toHaveLength(10)
  expect(await money.earned('demo')).toBe('0.10')
})

verifies(
  ['remote-pay.wallet', 'remote-pay.over', 'remote-pay.relay'],
  'an ACP agent that wants money gets it with the same prompt',
  async () => {
    const paid = await started({ wallet: tokenWallet('coin') })
    const events = await say(paid.wire, 'paid work')
    expect(textOf(events)).toBe('coin coin')
    expect(events.at(-1)?.['response'].extensions.uamp.paid_to).toEqual([
      { agent: 'coder', scheme: 'token', amount: '0.02', currency: 'USD' },
    ])
    const bounded = await started({ wallet: budget(tokenWallet('coin'), { perCall: '0.01' }) })
    expect((await say(bounded.wire, 'paid work')).at(-1)).toMatchObject({
      type: 'response.error',
      error: { code: 'payment_required', details: { reason: 'budget_exceeded' } },
    })
    const relaying = await started()
    const answer = await begin(relaying.wire, 'paid work')
    expect(await relaying.wire.next('payment.required')).toMatchObject({ requirements: { amount: '0.02', reason: 'Pay first' } })
    await relaying.wire.send({ type: 'payment.submit', payment: { scheme: 'token', token: 'theirs' } })
    expect(textOf(await answer.end())).toBe('theirs theirs')
  },
)
