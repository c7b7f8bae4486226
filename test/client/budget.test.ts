import { expect, test } from 'vitest'
import { budget, tokenWallet, x402Wallet, type Invoice, type Payment, type Wallet } from '../../src/client/node.ts'
import { Purse } from '../../src/wire/purse.ts'
import { verifies } from '../support/verifies.ts'

const DAY = 86_400_000
const NEVER = new AbortController().signal
const USDC = '0x036CbD53842c5426634e7929541eC2318f3dCF7e'

let invoices = 0
const invoice = (amount: string, more: Partial<Invoice> & { readonly currency?: string } = {}): Invoice => {
  const id = `i${++invoices}`
  const { currency = 'USD', ...rest } = more
  return { id, call: id, agent: 'far', requirements: { amount, currency }, ...rest }
}
const pay = (wallet: Wallet, asked: Invoice) => wallet.pay(asked, { signal: NEVER })
const isPaid = (given: Awaited<ReturnType<Wallet['pay']>>): given is Payment => given !== undefined && 'scheme' in given
const done = (wallet: Wallet, asked: Invoice, charged: string | undefined, payment: Payment = { scheme: 'token' }) =>
  wallet.done?.(asked, { payment, charged })

verifies('budget.bounds', 'of 64 at once, as many are paid as the day has money for', async () => {
  const slow: Wallet = { pay: async () => (await new Promise((resolve) => setTimeout(resolve, 1)), { scheme: 'token', token: 't' }) }
  const wallet = budget(slow, { perDay: '0.5' })
  const given = await Promise.all(Array.from({ length: 64 }, () => pay(wallet, invoice('0.03'))))
  expect(given.filter(isPaid)).toHaveLength(16)
  expect(given.find((each) => !isPaid(each))).toEqual({
    declined: '0.51 USD is more than the budget for a day, 0.50',
    code: 'budget_exceeded',
  })
  expect(isPaid(await pay(wallet, invoice('0.02')))).toBe(true)
  expect(isPaid(await pay(wallet, invoice('0.000000001')))).toBe(false)
})

verifies('budget.bounds', 'top-ups count to the answer that they belong to', async () => {
  const wallet = budget(tokenWallet('t'), { perCall: '0.05' })
  expect(isPaid(await pay(wallet, invoice('0.03', { call: 'a' })))).toBe(true)
  expect(await pay(wallet, invoice('0.03', { call: 'a' }))).toMatchObject({ code: 'budget_exceeded' })
  expect(isPaid(await pay(wallet, invoice('0.02', { call: 'a' })))).toBe(true)
  expect(isPaid(await pay(wallet, invoice('0.03', { call: 'b' })))).toBe(true)
})

verifies('budget.bounds', 'amounts that are none, and other currencies, are declined', async () => {
  const wallet = budget(tokenWallet('t'), { perDay: '1' })
  for (const amount of ['-1', '1e400', '', '0.0000000001', 'NaN', '99999999999999999'])
    expect(isPaid(await pay(wallet, invoice(amount)))).toBe(false)
  expect(await pay(wallet, invoice('0.01', { currency: 'EUR' }))).toEqual({
    declined: 'It wants EUR, and the budget is in USD',
    code: 'budget_exceeded',
  })
  expect(isPaid(await pay(wallet, invoice('1')))).toBe(true)
  expect(() => budget(tokenWallet('t'), { perDay: '1 dollar' })).toThrow('perDay is a text such as "0.05"')
})

verifies('budget.bounds', 'a new day has its own money, and a clock that is set back makes none', async () => {
  let now = 10 * DAY
  const wallet = budget(tokenWallet('t'), { perDay: '0.01', now: () => now })
  const first = invoice('0.01')
  expect(isPaid(await pay(wallet, first))).toBe(true)
  now -= 3 * DAY
  expect(isPaid(await pay(wallet, invoice('0.01')))).toBe(false)
  now = 11 * DAY
  expect(isPaid(await pay(wallet, invoice('0.01')))).toBe(true)
  // Yesterday's money is not today's.
  await done(wallet, first, '0')
  expect(isPaid(await pay(wallet, invoice('0.01')))).toBe(false)
})

verifies('budget.gives-back', 'what was not charged, and what was not paid after all', async () => {
  let works = false
  const inner: Wallet = { pay: async () => (works ? { scheme: 'token', token: 't' } : Promise.reject(new Error('shut'))) }
  const wallet = budget(inner, { perDay: '0.1' })
  await expect(pay(wallet, invoice('0.1'))).rejects.toThrow('shut')
  works = true
  const asked = invoice('0.1')
  expect(isPaid(await pay(wallet, asked))).toBe(true)
  await done(wallet, asked, '0.04')
  await done(wallet, asked, '0.04')
  expect(isPaid(await pay(wallet, invoice('0.06')))).toBe(true)
  expect(isPaid(await pay(wallet, invoice('0.01')))).toBe(false)
})

verifies('budget.gives-back', 'nobody said what was charged: all of it; and a proof counts whatever is said', async () => {
  const wallet = budget(tokenWallet('t'), { perDay: '0.3' })
  const [one, two, three] = [invoice('0.1'), invoice('0.1'), invoice('0.1')]
  for (const each of [one, two, three]) await pay(wallet, each)
  await done(wallet, one, undefined)
  await done(wallet, two, '0', { scheme: 'exact', proof: {} })
  await done(wallet, three, '5')
  expect(isPaid(await pay(wallet, invoice('0.01')))).toBe(false)
})

verifies('budget.gives-back', 'a wallet that knows better is believed', async () => {
  const inner: Wallet = { pay: async () => ({ scheme: 'token', token: 't' }), done: async () => '0.09' }
  const wallet = budget(inner, { perDay: '0.1' })
  const asked = invoice('0.1')
  await pay(wallet, asked)
  await done(wallet, asked, '0')
  expect(isPaid(await pay(wallet, invoice('0.01')))).toBe(true)
  expect(isPaid(await pay(wallet, invoice('0.01')))).toBe(false)
})

verifies('budget.approval', 'above the limit somebody has to approve', async () => {
  const questions: string[] = []
  let answer = false
  const approve = (question: string): boolean => {
    questions.push(question)
    return answer
  }
  const wallet = budget(tokenWallet('t'), { perDay: '1', above: { amount: '0.05', approve } })
  expect(isPaid(await pay(wallet, invoice('0.05')))).toBe(true)
  const big = invoice('0.06', { requirements: { amount: '0.06', currency: 'USD', reason: 'A picture' } })
  expect(await pay(wallet, big)).toEqual({ declined: 'The payment was not approved' })
  answer = true
  expect(isPaid(await pay(wallet, big))).toBe(true)
  expect(questions).toEqual(['Pay 0.06 USD to far? A picture', 'Pay 0.06 USD to far? A picture'])
  // Many small payments of one answer are a big one.
  expect(isPaid(await pay(wallet, invoice('0.04', { call: 'a' })))).toBe(true)
  expect(isPaid(await pay(wallet, invoice('0.04', { call: 'a' })))).toBe(true)
  expect(questions).toHaveLength(3)
  const nobody = budget(tokenWallet('t'), { above: { amount: '0.05' } })
  expect(await pay(nobody, invoice('0.06'))).toMatchObject({
    code: 'budget_exceeded',
    declined: expect.stringContaining('nobody can be asked'),
  })
  expect(isPaid(await nobody.pay(invoice('0.06'), { signal: NEVER, approve: () => true }))).toBe(true)
})

verifies('x402-wallet.bounds', 'a proof is signed for what was said, and not for what stands in the small print', async () => {
  const signed: unknown[] = []
  const wallet = x402Wallet({
    createPaymentPayload: async (required: { accepts: unknown[] }) => {
      signed.push(required.accepts)
      return { x402Version: 2, accepted: required.accepts[0], payload: { signature: '0x1' } }
    },
  })
  const accept = (amount: string, asset = USDC) => ({ scheme: 'exact', network: 'eip155:84532', amount, asset, payTo: '0x2' })
  const asks = (accepts: object[], more = {}) => invoice('0.01', { extra: { x402: { x402Version: 2, accepts } }, ...more })
  expect(await pay(wallet, asks([accept('10001'), accept('1', '0x9'), accept('10000')]))).toEqual({
    scheme: 'exact',
    network: 'eip155:84532',
    amount: '0.01',
    proof: { x402Version: 2, accepted: accept('10000'), payload: { signature: '0x1' } },
  })
  expect(signed).toEqual([[accept('10000')]])
  // Version 1 has another name for the amount, and signs that one.
  const twice = { ...accept('1'), maxAmountRequired: '9000000000000' }
  for (const accepts of [
    [accept('10001')],
    [accept('-1')],
    [accept('1', '0x9')],
    [accept('1'.repeat(40))],
    [accept('1', 'constructor')],
    [twice],
    [],
  ])
    expect(await pay(wallet, asks(accepts))).toMatchObject({ declined: 'It does not take x402 for 0.01 USD' })
  expect(await pay(wallet, asks([accept('1')], { requirements: { amount: '5', currency: 'EUR' } }))).toHaveProperty('declined')
  expect(await pay(wallet, invoice('0.01'))).toEqual({ declined: 'It does not take x402' })
  expect(signed).toHaveLength(1)
})

test('a token wallet says what it cannot pay', async () => {
  const schemes = [{ scheme: 'crypto', network: 'base' }]
  expect(await pay(tokenWallet('t'), invoice('1', { requirements: { amount: '1', currency: 'USD', schemes } }))).toEqual({
    declined: 'It takes crypto, and the wallet has a token',
  })
})

verifies('budget.bounds', 'a seller who says that each proof was refused gets no more of them than an answer may cost', async () => {
  const signer = { createPaymentPayload: async () => ({ x402Version: 2, payload: { signature: '0x1' } }) }
  const wallet = budget(x402Wallet(signer), { perCall: '0.05' })
  const accepts = [{ scheme: 'exact', network: 'eip155:84532', amount: '20000', asset: USDC, payTo: '0x2' }]
  const purse = new Purse({ wallet, call: 'call', agent: 'far', url: undefined })
  const asked = (error?: object) =>
    purse.pay({ requirements: { amount: '0.02', currency: 'USD' }, extra: { error, x402: { accepts } } }, NEVER)
  const refused = { code: 'token_invalid' }
  expect(isPaid(await asked())).toBe(true)
  expect(isPaid(await asked(refused))).toBe(true)
  for (let turn = 0; turn < 10; turn++) expect(await asked(refused)).toMatchObject({ code: 'budget_exceeded' })
})

test('a budget remembers a bounded number of answers, and goes on to pay', async () => {
  const wallet = budget(
    tokenWallet(() => 't'),
    {},
  )
  for (let call = 0; call < 10_500; call++) {
    const asked = invoice('0.01', { call: `call ${call}` })
    const payment = await wallet.pay(asked, { signal: NEVER })
    expect(isPaid(payment)).toBe(true)
    await wallet.done?.(asked, { payment: payment as Payment, charged: '0.01' })
  }
})

test('a bound that is misspelt is refused, and so is a token that is no text', () => {
  const misspelt = { percall: '0.05' } as object
  expect(() => budget(tokenWallet('t'), misspelt)).toThrow('A budget has no option "percall": there are perCall, perDay, currency, above')
  for (const wrong of [{ token: 't' }, undefined]) expect(() => tokenWallet(wrong as never)).toThrow('A payment token is a text')
})
