import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { budget, connect, splitWallet } from '../../src/client/node.ts'
import type { Ledger } from '../../src/payments/ledger.ts'
import { formatAmount, parseAmount } from '../../src/protocol/money.ts'
import { moneyOf } from '../support/ledger-money.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'

/** The three calls that the wallet makes, for a ledger that some other server has. */
async function ledgerApi(ledger: Ledger) {
  const calls: string[] = []
  const answerTo = async (request: IncomingMessage): Promise<[number, object]> => {
    let text = ''
    for await (const chunk of request) text += String(chunk)
    const body = text === '' ? {} : (JSON.parse(text) as Record<string, string>)
    const path = String(request.url).replace('/api/payments/', '')
    calls.push(`${request.method} ${path.split('/')[0]}`)
    if (path === 'delegate') {
      const parent = await ledger.tokens.verify('default', body['parentToken'] ?? '')
      if (!parent) return [402, {}]
      const amount = parseAmount(body['amount']) ?? 0n
      const made = await ledger.tokens.delegate(parent.token, { agents: [body['delegateTo'] ?? ''], amount }).catch(() => undefined)
      return made ? [201, { token: made.text }] : [402, {}]
    }
    if (path === 'verify') {
      const found = await ledger.tokens.verify('default', body['token'] ?? '')
      return [200, { valid: found !== undefined, balance: formatAmount(found?.account.available ?? 0n) }]
    }
    const token = await ledger.tokens.get('default', path.replace('tokens/', ''))
    if (token) await ledger.tokens.end(token)
    return [token ? 200 : 404, {}]
  }
  const server = createServer((request, response) => {
    void answerTo(request).then(([status, body]) => response.writeHead(status).end(JSON.stringify(body)))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return { calls, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

verifies('split.exact', 'each demand has a token of its own, and what is left of it goes back', async () => {
  const server = await startServer(demo())
  const money = moneyOf(server.ledger)
  const token = await money.token('1')
  const { url, calls } = await ledgerApi(server.ledger)
  const client = connect(server.url, { wallet: budget(splitWallet({ url, token: token.text }), { perDay: '0.1' }) })
  onTestFinished(() => client.close())
  const session = await client.session()
  const seen: string[] = []
  for await (const event of session.ask('/pay 0.02')) {
    seen.push(event.type)
    // While it runs, the money is in the other token.
    if (event.type === 'payment.accepted') expect(event.balance_remaining).toBe('0.00')
  }
  expect(seen).toContain('payment.accepted')
  await expect.poll(() => calls).toEqual(['POST delegate', 'POST verify', 'DELETE tokens'])
  await expect.poll(() => token.left()).toBe('0.98')
  expect(await money.earned('demo')).toBe('0.02')
  expect((await server.ledger.check()).problems).toEqual([])
})

verifies('split.exact', 'a token that may not be handed on, or holds too little, pays nothing', async () => {
  const server = await startServer(demo())
  const money = moneyOf(server.ledger)
  const { url } = await ledgerApi(server.ledger)
  for (const token of [await money.token('1', { maxDepth: 0 }), await money.token('0.01')]) {
    const client = connect(server.url, { wallet: splitWallet({ url, token: token.text }) })
    onTestFinished(() => client.close())
    await expect((await client.session()).say('/pay 0.02')).rejects.toMatchObject({
      code: 'budget_exceeded',
      message: 'There is not enough money in the token',
    })
  }
  expect(await money.earned('demo')).toBe('0.00')
})
