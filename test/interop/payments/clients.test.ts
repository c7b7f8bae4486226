/** The official clients of x402 buy answers over protocols of OpenAI's. */
import { decodeXPaymentResponse, wrapFetchWithPayment as wrapV1 } from 'x402-fetch'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { describe, expect, test } from 'vitest'
import { verifies } from '../../support/verifies.ts'
import { ATOMIC, completion, decoded, earned, openShop, payer } from './shop.ts'
import { ASSET, NETWORK, PAY_TO } from './chain.ts'

const clients = [
  { verifies: 'x402.pay-v2', name: '@x402/fetch, version 2', header: 'payment-response', network: NETWORK, open: () => payer() },
  {
    verifies: 'x402.pay-v1',
    name: 'x402-fetch, version 1',
    header: 'x-payment-response',
    network: 'base-sepolia',
    open: () => {
      const account = privateKeyToAccount(generatePrivateKey())
      return { account, fetch: wrapV1(fetch, account as never) as typeof fetch }
    },
  },
] as const

interface Chunk {
  readonly choices: readonly { readonly delta: { readonly content?: string } }[]
}

describe.each(clients)('$name [$verifies]', ({ open, header, network }) => {
  test('buys a completion', async () => {
    const { url, facilitator, ledger } = await openShop()
    const { account, fetch: paying } = open()
    const response = await paying(`${url}/v1/chat/completions`, completion())
    expect(response.status).toBe(200)
    expect(await response.json()).toMatchObject({ choices: [{ message: { content: 'Thank you' } }] })
    const [moved, ...others] = facilitator.moved
    expect([moved, others]).toMatchObject([{ from: account.address, to: PAY_TO, value: ATOMIC }, []])
    expect(decoded(response.headers.get(header))).toMatchObject({ success: true, transaction: moved?.hash, network })
    expect(response.headers.get('cache-control')).toBe('private, no-store')
    expect(await earned({ ledger })).toBe('0.01')
    expect(facilitator.asked).toEqual(['/verify', '/settle'])
  })

  test('buys a completion that is streamed, with the receipt in its last chunk', async () => {
    const { url, facilitator, ledger } = await openShop()
    const { fetch: paying } = open()
    const response = await paying(`${url}/v1/chat/completions`, completion({ stream: true }))
    expect(response.status).toBe(200)
    const lines = (await response.text()).split('\n').filter((line) => line.startsWith('data: {'))
    const chunks = lines.map((line) => JSON.parse(line.slice(6)) as Chunk)
    expect(chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join('')).toBe('Thank you')
    const receipt = { success: true, transaction: facilitator.moved[0]?.hash, network: NETWORK }
    expect(chunks.at(-1)).toMatchObject({ choices: [], uamp: { payments: [{ scheme: 'exact', amount: '0.01' }], receipts: [receipt] } })
    expect(await earned({ ledger })).toBe('0.01')
  })

  test('buys a response', async () => {
    const { url, facilitator, ledger } = await openShop()
    const { fetch: paying } = open()
    const request = { ...completion(), body: JSON.stringify({ model: 'shop', input: 'hello' }) }
    const response = await paying(`${url}/v1/responses`, request)
    expect(response.status).toBe(200)
    const receipt = { success: true, transaction: facilitator.moved[0]?.hash }
    expect(decoded(response.headers.get(header))).toMatchObject(receipt)
    expect(await response.json()).toMatchObject({ status: 'completed', uamp: { receipts: [receipt] } })
    const streamed = await paying(`${url}/v1/responses`, { ...request, body: JSON.stringify({ model: 'shop', input: 'hi', stream: true }) })
    const last = (await streamed.text()).split('\n').findLast((line) => line.startsWith('data: {')) ?? ''
    const second = { transaction: facilitator.moved[1]?.hash }
    expect(JSON.parse(last.slice(6))).toMatchObject({ type: 'response.completed', response: { uamp: { receipts: [second] } } })
    expect(await earned({ ledger })).toBe('0.02')
  })
})

verifies('x402.receipt', 'clients of version 1 find the receipt by their own function', async () => {
  const { url } = await openShop()
  const account = privateKeyToAccount(generatePrivateKey())
  const response = await (wrapV1(fetch, account as never) as typeof fetch)(`${url}/v1/chat/completions`, completion())
  expect(decodeXPaymentResponse(response.headers.get('x-payment-response') ?? '')).toMatchObject({
    success: true,
    payer: account.address.toLowerCase(),
  })
})

verifies('x402.required', 'a refusal has what every client looks for', async () => {
  const { url } = await openShop()
  const response = await fetch(`${url}/v1/chat/completions`, completion())
  expect([response.status, response.headers.get('cache-control')]).toEqual([402, 'private, no-store'])
  const body = (await response.json()) as Record<string, unknown>
  const exact = { scheme: 'exact', asset: ASSET, payTo: PAY_TO, maxTimeoutSeconds: 300, extra: { name: 'USDC', version: '2' } }
  expect(body).toMatchObject({ error: { type: 'payment_required', code: 'payment_required' }, status_code: 402, x402Version: 1 })
  expect(body['accepts']).toMatchObject([{ ...exact, network: 'base-sepolia', maxAmountRequired: '10000' }])
  const token = { scheme: 'token', network: 'uamp', amount: '0.01', asset: 'USD', maxTimeoutSeconds: 300, extra: { tokenType: 'jwt' } }
  const crypto = { scheme: 'crypto', network: NETWORK, address: PAY_TO, amount: '0.01', currency: 'USD' }
  expect(body['context']).toMatchObject({ accepts: [token, crypto] })
  const header = decoded(response.headers.get('payment-required'))
  expect(header).toMatchObject({ x402Version: 2, resource: { url: expect.stringContaining('/agents/shop') as string } })
  expect(header['accepts']).toMatchObject([{ ...exact, network: NETWORK, amount: '10000' }])
})
