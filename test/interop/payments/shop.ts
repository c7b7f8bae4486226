import { generatePrivateKey, privateKeyToAccount, type PrivateKeyAccount } from 'viem/accounts'
import { x402Client, wrapFetchWithPayment } from '@x402/fetch'
import { ExactEvmScheme } from '@x402/evm/exact/client'
import { expect } from 'vitest'
import { defineAgent } from '../../../src/core/agent-kit/define-agent.ts'
import { text } from '../../../src/core/agent-kit/drafts.ts'
import type { X402Settings } from '../../../src/payments/x402/settings.ts'
import type { ServeOptions } from '../../../src/serve/index.ts'
import { startServer } from '../../support/server.ts'
import { NETWORK, PAY_TO } from './chain.ts'
import { startFacilitator, type LocalFacilitator } from './facilitator.ts'

/** The price in the smallest units of USDC. */
export const ATOMIC = 10_000n

/** Costs a cent for an answer. */
export const shop = defineAgent(
  'shop',
  async function* () {
    yield text('Thank ')
    yield text('you')
  },
  { price: { call: '0.01' } },
)

function settingsFor({ url }: Pick<LocalFacilitator, 'url'>, more: Partial<X402Settings> = {}) {
  return {
    payments: { x402: { payTo: PAY_TO, network: NETWORK, facilitator: url, ...more } },
    outbound: { allow: ['127.0.0.1'] },
  } satisfies Partial<ServeOptions>
}

/** A server with the shop, its facilitator, and the ledger's sums. */
export async function openShop({
  data = 'memory',
  facilitator: given,
  ...more
}: Omit<Partial<X402Settings>, 'facilitator'> & { readonly data?: string; readonly facilitator?: LocalFacilitator } = {}) {
  const facilitator = given ?? (await startFacilitator())
  const server = await startServer(shop, { data, ...settingsFor(facilitator, more) })
  return { ...server, facilitator }
}

export type Shop = Awaited<ReturnType<typeof openShop>>

/** What the shop has earned, if the sums of its ledger are right. */
export async function earned({ ledger }: Pick<Shop, 'ledger'>): Promise<string> {
  const { problems, sums, inside } = await ledger.check()
  expect(problems).toEqual([])
  expect(sums['USD'] ?? '0.00').toBe('0.00')
  return inside['USD'] ?? '0.00'
}

/** A payer with an account of its own, as the official client of version 2. */
export function payer(account: PrivateKeyAccount = privateKeyToAccount(generatePrivateKey())) {
  const client = new x402Client().register('eip155:*', new ExactEvmScheme(account))
  return { account, client, fetch: wrapFetchWithPayment(fetch, client) }
}

export const completion = (more: object = {}) => ({
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ model: 'shop', messages: [{ role: 'user', content: 'hello' }], ...more }),
})

/** One payment for the shop, signed but not sent. */
export async function signed(url: string, { client } = payer()) {
  const refused = await fetch(`${url}/v1/chat/completions`, completion())
  const required = decoded(refused.headers.get('payment-required'))
  const payload = await client.createPaymentPayload(required as never)
  return payload as unknown as {
    x402Version: number
    accepted: Record<string, unknown>
    payload: { signature: string; authorization: object }
  }
}

export function decoded(header: string | null): Record<string, unknown> {
  return JSON.parse(Buffer.from(header ?? '', 'base64').toString()) as Record<string, unknown>
}

export function encoded(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64')
}

interface Answered {
  readonly choices?: readonly { readonly message: { readonly content: string } }[]
  readonly context?: { readonly accepts: readonly object[] }
}

/** Asks the shop with a payment in a header. */
export async function pay(url: string, payment: unknown, name = 'payment-signature') {
  const request = completion()
  const headers = { ...request.headers, [name]: typeof payment === 'string' ? payment : encoded(payment) }
  const response = await fetch(`${url}/v1/chat/completions`, { ...request, headers })
  const body = (await response.json()) as Answered
  return { status: response.status, headers: response.headers, body, said: body.choices?.[0]?.message.content }
}
