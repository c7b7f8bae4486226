import { expect, onTestFinished } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { budget, connect, splitWallet } from '../../src/client/node.ts'
import { moneyOf } from '../support/ledger-money.ts'
import { startServer } from '../support/server.ts'
import { Purse } from '../../src/wire/purse.ts'
import { SECRETS, startBank } from './rest-support.ts'
import { verifies } from '../support/verifies.ts'

verifies('split.exact', 'each demand has a token of its own, and what is left of it goes back', async () => {
  const server = await startServer(demo())
  const money = moneyOf(server.ledger)
  const token = await money.token('1')
  const { url } = server
  const calls: string[] = []
  const counted: typeof fetch = (to, init) => {
    calls.push(`${init?.method} ${String(to).replace(/ptok_.*/, '')}`)
    return fetch(to, init)
  }
  const wallet = budget(splitWallet({ url, token: token.text, fetch: counted }), { perDay: '0.1' })
  const client = connect(url, { wallet })
  onTestFinished(() => client.close())
  const session = await client.session()
  const seen: string[] = []
  for await (const event of session.ask('/pay 0.02')) {
    seen.push(event.type)
    // While it runs, the money is in the other token.
    if (event.type === 'payment.accepted') expect(event.balance_remaining).toBe('0.00')
  }
  expect(seen).toContain('payment.accepted')
  await expect
    .poll(() => calls)
    .toEqual(['POST delegate', 'POST verify', 'DELETE tokens/'].map((call) => call.replace(' ', ` ${url}/api/payments/`)))
  await expect.poll(() => token.left()).toBe('0.98')
  expect(await money.earned('demo')).toBe('0.02')
  expect((await server.ledger.check()).problems).toEqual([])
})

verifies('split.exact', 'a token that may not be handed on, or holds too little, pays nothing', async () => {
  const server = await startServer(demo())
  const money = moneyOf(server.ledger)
  const { url } = server
  const cases = [
    { token: await money.token('1', { maxDepth: 0 }), code: 'payment_declined', message: 'The token may not be handed on' },
    { token: await money.token('0.01'), code: 'budget_exceeded', message: 'There is not enough money in the token' },
  ]
  for (const { token, ...why } of cases) {
    const client = connect(url, { wallet: splitWallet({ url, token: token.text }) })
    onTestFinished(() => client.close())
    await expect((await client.session()).say('/pay 0.02')).rejects.toMatchObject(why)
  }
  expect(await money.earned('demo')).toBe('0.00')
})

verifies(
  'budget.bounds',
  'a seller who says that each token was refused gets no more of them than the budget has, where none can be ended',
  async () => {
    const bank = await startBank({ allowAnonymous: true })
    const { url } = bank
    const made = async () =>
      String((await bank.does('bank', 'POST tokens', { amount: '1', agents: ['shop'], principal: 'alice' }))['token'])
    const given = async (headers?: Record<string, string>): Promise<number> => {
      const split = splitWallet({ url, token: await made(), ...(headers && { headers }) })
      const purse = new Purse({ wallet: budget(split, { perCall: '0.05' }), call: 'call', agent: 'shop', url })
      let tokens = 0
      for (let turn = 0; turn < 4; turn++) {
        const extra = turn === 0 ? undefined : { error: { code: 'token_invalid' } }
        const paid = await purse.pay({ requirements: { amount: '0.02', currency: 'USD' }, extra }, new AbortController().signal)
        if (!('declined' in paid)) tokens++
      }
      return tokens
    }
    expect(await given()).toBe(2)
    // Its owner ends each token before the next one is made.
    expect(await given({ authorization: `Bearer ${SECRETS.alice}` })).toBe(4)
  },
)
