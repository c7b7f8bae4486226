import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { WebSocketServer } from 'ws'
import { demo } from '../../src/agents/demo/index.ts'
import {
  budget,
  connect,
  tokenWallet,
  type UampClientError,
  type ConnectOptions,
  type Invoice,
  type Payment,
  type Wallet,
} from '../../src/client/node.ts'
import { moneyOf } from '../support/ledger-money.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'
import { startProxy } from './proxy.ts'

async function start(options: ConnectOptions & { readonly through?: string } = {}) {
  const server = await startServer(demo())
  const money = moneyOf(server.ledger)
  const open = (more: ConnectOptions = {}, url = server.url) => {
    const client = connect(url, { ...options, ...more })
    onTestFinished(() => client.close())
    return client
  }
  return { server, money, open }
}

/** A wallet that remembers what it was asked for, and told. */
function watched(wallet: Wallet) {
  const asked: Invoice[] = []
  const told: (string | undefined)[] = []
  const paying: Wallet = {
    pay: (invoice, context) => {
      asked.push(invoice)
      return wallet.pay(invoice, context)
    },
    done: async (invoice, outcome) => {
      told.push(outcome.charged)
      return wallet.done?.(invoice, outcome)
    },
  }
  return { asked, told, wallet: paying }
}

const failure = (answer: Promise<unknown>): Promise<UampClientError> =>
  answer.then(
    () => expect.unreachable(),
    (thrown: unknown) => thrown as UampClientError,
  )

for (const transport of ['websocket', 'sse'] as const)
  verifies('wallet.pays', `a wallet pays, and is told what was charged: ${transport}`, async () => {
    const { money, open } = await start()
    const token = await money.token('1')
    const { asked, told, wallet } = watched(tokenWallet(() => token.text))
    const session = await open({ transport, wallet }).session()
    expect(await session.say('/pay 0.02')).toBe('Paid 0.02 USD. Thank you.')
    expect(asked).toMatchObject([{ agent: 'demo', requirements: { amount: '0.02', currency: 'USD', reason: 'The demo wants to be paid' } }])
    await expect.poll(() => told).toEqual(['0.02'])
    expect(await token.left()).toBe('0.98')
    expect(await money.earned('demo')).toBe('0.02')
  })

verifies('wallet.pays', 'a top-up in the middle of an answer', async () => {
  const { money, open } = await start()
  const token = await money.token('1')
  const { asked, wallet } = watched(tokenWallet(token.text))
  const session = await open({ wallet }).session()
  expect(await session.say('/topup 0.03')).toBe('This is the first half of the answer. Paid 0.03 USD: this is the second half.')
  expect(asked).toMatchObject([{ extra: { action: 'topup' } }])
  expect(await token.left()).toBe('0.97')
})

verifies('wallet.once', 'a payment that is lost on its way is sent again, and not paid again', async () => {
  const { server, money, open } = await start()
  const proxy = await startProxy(server.port)
  onTestFinished(() => proxy.close())
  const token = await money.token('1')
  const { asked, wallet } = watched({
    pay: async ({ requirements }) => {
      // What is sent from here on is lost, until the connection is cut.
      proxy.upstream = 'lose'
      setTimeout(() => {
        proxy.upstream = 'pass'
        proxy.cut()
      }, 50)
      return { scheme: 'token', token: token.text, amount: requirements.amount }
    },
  })
  const session = await open({ wallet, transport: 'websocket', reconnect: { minMs: 5, maxMs: 40 } }, proxy.url).session()
  expect(await session.say('/pay 0.02')).toBe('Paid 0.02 USD. Thank you.')
  expect(asked).toHaveLength(1)
  expect(await token.left()).toBe('0.98')
})

verifies('wallet.once', 'a session that is resumed elsewhere pays the question that is still open, and no older one', async () => {
  const { money, open } = await start()
  const token = await money.token('1')
  const client = open({ wallet: tokenWallet(token.text) })
  const first = await client.session()
  await first.say('/pay 0.02')
  client.close()
  const byHand = await open().session({ resume: { session_id: first.id, after: 0 } })
  await byHand.send({ type: 'input.text', text: '/pay 0.03' })
  await byHand.send({ type: 'response.create' })
  const { asked, wallet } = watched(tokenWallet(token.text))
  const again = await open({ wallet }).session({ resume: { session_id: first.id, after: 0 } })
  const seen: string[] = []
  for await (const event of again) {
    if (event.type === 'response.done') seen.push(event.type)
    if (seen.length === 2) break
  }
  expect(asked.map(({ requirements }) => requirements.amount)).toEqual(['0.03'])
  expect(await token.left()).toBe('0.95')
})

verifies('wallet.declines', 'why a wallet does not pay is what the application gets', async () => {
  const { money, open } = await start()
  const token = await money.token('1')
  const declining = await open({ wallet: { pay: async () => undefined } }).session()
  expect(await failure(declining.say('/pay'))).toMatchObject({ code: 'payment_declined', message: 'The wallet does not pay this' })
  const bounded = await open({ wallet: budget(tokenWallet(token.text), { perCall: '0.05' }) }).session()
  expect(await failure(bounded.say('/pay 0.06'))).toMatchObject({
    code: 'budget_exceeded',
    message: '0.06 USD is more than the budget for an answer, 0.05',
  })
  expect(await bounded.say('/pay 0.05')).toContain('Thank you')
  const broken = await open({ wallet: { pay: () => Promise.reject(new Error('the safe is shut')) } }).session()
  expect(await failure(broken.say('/pay'))).toMatchObject({ code: 'payment_declined', cause: { message: 'the safe is shut' } })
  expect(await token.left()).toBe('0.95')
})

verifies('wallet.declines', 'a token that is refused is not sent again and again', async () => {
  const { money, open } = await start()
  const [empty, full] = [await money.token('0.01'), await money.token('1')]
  const one = watched(tokenWallet(empty.text))
  const session = await open({ wallet: one.wallet }).session()
  expect(await failure(session.say('/pay 0.02'))).toMatchObject({
    code: 'payment_declined',
    message: 'The token was refused: The payment token holds 0.01 USD, and 0.02 are needed',
  })
  expect(one.asked).toHaveLength(2)
  const tokens = [empty.text, full.text]
  const other = await open({ wallet: tokenWallet(() => tokens.shift() ?? '') }).session()
  expect(await other.say('/pay 0.02')).toContain('Thank you')
})

verifies('wallet.by-hand', 'without a wallet the application pays, or declines', async () => {
  const { money, open } = await start()
  const token = await money.token('1')
  const session = await open().session()
  const seen: string[] = []
  for await (const event of session.ask('/pay 0.02')) {
    seen.push(event.type)
    if (event.type === 'payment.required') await session.pay({ scheme: 'token', token: token.text })
  }
  expect(seen).toEqual(expect.arrayContaining(['payment.required', 'payment.accepted', 'response.done']))
  const declined = async (): Promise<void> => {
    for await (const event of session.ask('/pay 0.02')) if (event.type === 'payment.required') await session.pay()
  }
  expect(await failure(declined())).toMatchObject({ code: 'payment_required' })
  expect(await token.left()).toBe('0.98')
})

test('the wallet of a client that leaves is told, and may give up waiting', async () => {
  const { open } = await start()
  let aborted = false
  const wallet: Wallet = {
    pay: (_, { signal }) =>
      new Promise((resolve) =>
        signal.addEventListener('abort', () => {
          aborted = true
          resolve(undefined)
        }),
      ),
  }
  const client = open({ wallet })
  const session = await client.session()
  const answer = failure(session.say('/pay'))
  for await (const event of session) if (event.type === 'payment.required') break
  client.close()
  expect(await answer).toMatchObject({ code: 'closed' })
  expect(aborted).toBe(true)
})

verifies('budget.bounds', 'a server that gives each demand another response gets no more than an answer may cost', async () => {
  const submitted: Payment[] = []
  const liar = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  onTestFinished(() => liar.close())
  liar.on('connection', (socket) => {
    let seq = 0
    const tell = (event: object): void =>
      socket.send(JSON.stringify({ event_id: `s${++seq}`, session_id: 'sess', seq, timestamp: 0, ...event }))
    socket.on('message', (text) => {
      const event = JSON.parse(String(text)) as { type: string; event_id: string; payment: Payment }
      if (event.type === 'session.create') tell({ type: 'session.created', uamp_version: '1.0', agent: 'liar' })
      if (event.type === 'payment.submit') submitted.push(event.payment)
      const isAnswered = event.type === 'payment.submit' && submitted.length % 4 === 0
      if (isAnswered || (event.type !== 'response.create' && event.type !== 'payment.submit')) return
      tell({ type: 'payment.required', response_id: `r${seq}`, requirements: { amount: '0.02', currency: 'USD' } })
    })
  })
  await once(liar, 'listening')
  let tokens = 0
  const wallet = budget(
    tokenWallet(() => `t${++tokens}`),
    { perCall: '0.05' },
  )
  const client = connect(`http://127.0.0.1:${(liar.address() as AddressInfo).port}`, { wallet, transport: 'websocket' })
  onTestFinished(() => client.close())
  const session = await client.session()
  for (const answers of [1, 2]) {
    void session.send({ type: 'response.create' }).catch(() => undefined)
    await expect.poll(() => submitted).toHaveLength(4 * answers)
  }
  const each = ['token', 'token', 'declined', 'declined']
  expect(submitted.map(({ scheme }) => scheme)).toEqual([...each, ...each])
})
