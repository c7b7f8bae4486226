import { Buffer } from 'node:buffer'
import { expect, test } from 'vitest'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { text } from '../../src/core/agent-kit/drafts.ts'
import { paymentSecretIn } from '../support/payment-secrets.js'
import { placesOfSecrets, startServer } from '../support/server.ts'
import { memoryStore } from '../../src/stores/memory.ts'

const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
const TOKENS = [
  { alg: 'RS256', typ: 'payment+jwt', kid: 'k' },
  { typ: 'payment+jwt', alg: 'RS256' },
  { kid: 'abc', typ: 'payment+jwt' },
].map((header) => `${part(header)}.${part({ jti: 'ptok_1' })}.${'s'.repeat(342)}`)
const PROOF = Buffer.from(JSON.stringify({ x402Version: 1, scheme: 'exact', payload: { signature: '0x12' } })).toString('base64')
const SIGNED = JSON.stringify({ payload: { signature: `0x${'ab'.repeat(65)}` } })

const agent = defineAgent(
  'paid',
  async function* () {
    yield text('fine')
  },
  { price: { call: '0.01' } },
)

test.each([...TOKENS, PROOF, SIGNED, JSON.stringify(SIGNED)])('a payment is seen wherever it stands: %#', (secret) => {
  for (const before of ['', 'x', '{"token":"']) expect(paymentSecretIn(`${before} ${secret} "}`)).toBeDefined()
})

test.each(['', 'payment+jwt', `${part({ typ: 'JWT' })}.${part({})}.${'s'.repeat(342)}`, part({ typ: 'payment+jwt' })])(
  'what pays for nothing is none: %#',
  (harmless) => {
    expect(paymentSecretIn(harmless)).toBeUndefined()
  },
)

test('a token that was left in a record, a stream or the log is found, and its place is told', async () => {
  const server = await startServer(agent)
  const store = memoryStore()
  const [token = ''] = TOKENS
  await store.batch([{ op: 'set', key: 'default/planted/1', value: { deep: [{ token }] } }])
  await store.append('default/planted/log', { first: 1, last: 1, text: JSON.stringify({ token }) })
  const places = await placesOfSecrets({ url: server.url, store, logged: [{ message: 'x', fields: { headers: { token } } }] })
  expect(places).toEqual([
    'a payment token in the log',
    'a payment token in the record default/planted/1',
    'a payment token in the stream default/planted/log',
  ])
})

test('a server that was paid keeps nothing of the token', async () => {
  const { url, ledger } = await startServer(agent)
  const { text: token } = await ledger.tokens.issue({
    tenant: 'default',
    owner: 'payer',
    agents: ['*'],
    currency: 'USD',
    amount: 1_000_000_000n,
    ttlMs: 60_000,
    maxDepth: 0,
    source: 'outside:USD',
  })
  expect(paymentSecretIn(token)).toBe('a payment token')
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-payment': token },
    body: JSON.stringify({ model: 'paid', store: true, messages: [{ role: 'user', content: 'hello' }] }),
  })
  expect(response.status).toBe(200)
})
