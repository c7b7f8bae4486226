/** Official clients of A2A pay for tasks by the extension a2a-x402. */
import { x402Client } from '@x402/core/client'
import { registerExactEvmScheme } from '@x402/evm/exact/client'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { describe, expect, test } from 'vitest'
import { X402_EXTENSION } from '../../../src/wire/a2a/extensions.ts'
import { startServer } from '../../support/server.ts'
import { verifies } from '../../support/verifies.ts'
import { artifactText, say, taskOf } from '../a2a/client.ts'
import { generations } from '../a2a/generations.ts'
import { ATOMIC, earned, openShop, pay, payer, shop, signed } from './shop.ts'

interface Card {
  readonly capabilities: { readonly extensions?: readonly { readonly uri: string }[] }
}

const required = (metadata: Readonly<Record<string, unknown>> | undefined) =>
  metadata?.['x402.payment.required'] as { x402Version: 1; accepts: readonly Record<string, unknown>[] }

describe.each(generations)('@a2a-js/sdk $name', ({ connect }) => {
  async function asked() {
    const { url, facilitator, ledger } = await openShop()
    const client = await connect(url)
    const task = taskOf(await client.send(say('hello')))
    const answer = async (metadata: Record<string, unknown>) =>
      taskOf(await client.send({ ...say('Here is the payment'), task: task.id, context: task.context, metadata }))
    const submit = (payload: unknown) => answer({ 'x402.payment.status': 'payment-submitted', 'x402.payment.payload': payload })
    return { url, facilitator, ledger, task, answer, submit }
  }

  verifies('x402.a2a', 'a task asks for money, is paid, and has the receipt', async () => {
    const { facilitator, ledger, task, submit } = await asked()
    expect([task.state, task.says?.metadata?.['x402.payment.status']]).toEqual(['input-required', 'payment-required'])
    const account = privateKeyToAccount(generatePrivateKey())
    const wallet = registerExactEvmScheme(new x402Client(), { signer: account })
    const payment = await wallet.createPaymentPayload(required(task.says?.metadata) as never)
    const done = await submit(payment)
    expect([done.state, artifactText(done)]).toEqual(['completed', 'Thank you'])
    const receipt = { success: true, transaction: facilitator.moved[0]?.hash, payer: account.address.toLowerCase() }
    expect(done.says?.metadata).toMatchObject({ 'x402.payment.status': 'payment-completed', 'x402.payment.receipts': [receipt] })
    expect(facilitator.moved).toMatchObject([{ from: account.address, value: ATOMIC }])
    expect(await earned({ ledger })).toBe('0.01')
  })

  test('a payment of version 2 is taken, too', async () => {
    const { url, submit, ledger } = await asked()
    const done = await submit(await signed(url, payer()))
    expect([done.state, await earned({ ledger })]).toEqual(['completed', '0.01'])
  })

  test('a payment that is not settled fails the task, which says why', async () => {
    const { url, facilitator, ledger, submit } = await asked()
    const payment = await signed(url)
    facilitator.act = async (path, honest) =>
      path === '/settle' ? { success: false, errorReason: 'insufficient_funds', transaction: '', network: 'base-sepolia' } : honest()
    const failed = await submit(payment)
    expect([failed.state, artifactText(failed)]).toEqual(['failed', ''])
    const receipt = { success: false, transaction: '', errorReason: 'insufficient_funds' }
    const said = { 'x402.payment.status': 'payment-failed', 'x402.payment.error': 'insufficient_funds' }
    expect(failed.says?.metadata).toMatchObject({ ...said, 'x402.payment.receipts': [receipt] })
    expect(await earned({ ledger })).toBe('0.00')
  })

  test('a replayed payment is asked for again, and a refused one ends the task', async () => {
    const { url, submit, answer, facilitator } = await asked()
    const payment = await signed(url)
    expect((await pay(url, payment)).said).toBe('Thank you')
    const again = await submit(payment)
    expect([again.state, again.says?.metadata?.['x402.payment.status']]).toEqual(['input-required', 'payment-required'])
    expect(again.says?.metadata?.['x402.payment.receipts']).toMatchObject([{ success: false, errorReason: 'token_invalid' }])
    const declined = await answer({ 'x402.payment.status': 'payment-rejected' })
    expect([declined.state, facilitator.moved.length]).toEqual(['canceled', 1])
  })
})

verifies('x402.a2a-card', 'the card announces the extension if the server is paid by x402', async () => {
  const cardAt = async (url: string): Promise<boolean> => {
    const card = (await (await fetch(`${url}/.well-known/agent-card.json`)).json()) as Card
    return card.capabilities.extensions?.some(({ uri }) => uri === X402_EXTENSION) ?? false
  }
  expect(await cardAt((await openShop()).url)).toBe(true)
  expect(await cardAt((await startServer(shop)).url)).toBe(false)
})
