import { mkdtempSync, readdirSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { otherLedger, TOKEN } from '../support/other-ledger.ts'
import { complete } from '../support/paying.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'

const seller = defineAgent(
  'seller',
  async function* () {
    yield 'Hi'
  },
  { price: { call: '0.25' } },
)
const metered = defineAgent(
  'metered',
  async function* () {
    yield 'Hi'
    yield { type: 'usage.delta', delta: { output_tokens: 3 } }
  },
  { price: { output: '1000000', reserve: '0.50' } },
)

type Meddle = Parameters<typeof otherLedger>[0]

async function sold(meddle?: Meddle, data = 'memory') {
  const ledger = await otherLedger(meddle)
  const server = await startServer([seller, metered], { ...ledger.options, data })
  return { ledger, server, buy: (agent = 'seller', stream = false) => complete(server.url, agent, { token: TOKEN, stream }) }
}

verifies('platform.pays', 'a token of another ledger pays', async () => {
  const { ledger, buy } = await sold()
  const response = await buy()
  expect(response.status).toBe(200)
  expect(ledger.money).toEqual({ left: 9.75, earned: 0.25 })
  expect(ledger.heard.map(({ path }) => path)).toEqual(['verify', 'lock', 'settle'].map((name) => `/api/payments/${name}`))
  expect(ledger.heard.at(-1)?.body).toMatchObject({ lockId: 'lock-1', amount: '0.25', release: true, chargeType: 'agent_fee' })
  expect(ledger.heard.every(({ authorization }) => authorization === 'Bearer secret-of-the-seller')).toBe(true)
})

verifies('platform.pays', 'a lock is extended by what is used beyond it, and the rest is given back', async () => {
  const { ledger, buy } = await sold()
  expect((await buy('metered')).status).toBe(200)
  expect(ledger.money).toEqual({ left: 7, earned: 3 })
  expect(ledger.locks.size).toBe(0)
})

const REFUSALS: readonly (readonly [name: string, Meddle])[] = [
  ['is down', () => 'cut'],
  ['answers with an error', () => ({ status: 503, body: {} })],
  ['answers with what is no JSON', () => ({ raw: '<html>' })],
  ['says too much', () => ({ raw: JSON.stringify({ valid: true, more: 'x'.repeat(100_000) }) })],
  ['locks less than it was asked', ({ path }) => (path.endsWith('/lock') ? { body: { lockId: 'l', lockedAmount: '0.10' } } : undefined)],
  ['names no lock', ({ path }) => (path.endsWith('/lock') ? { body: { lockedAmount: '0.25' } } : undefined)],
  ['does not know the token', ({ path }) => (path.endsWith('/verify') ? { body: { valid: false } } : undefined)],
  ['has another currency', ({ path }) => (path.endsWith('/verify') ? { body: { valid: true, balance: '9', currency: 'EUR' } } : undefined)],
  ['has too little', ({ path }) => (path.endsWith('/verify') ? { body: { valid: true, balance: '0.01' } } : undefined)],
]
for (const [name, meddle] of REFUSALS) {
  verifies(['platform.refuses', 'platform.secret'], `a ledger that ${name} sells nothing`, async () => {
    const { ledger, server, buy } = await sold(meddle)
    const response = await buy()
    expect(response.status).toBe(402)
    expect(await response.text()).not.toContain(TOKEN)
    expect(ledger.money.earned).toBe(0)
    expect(JSON.stringify(server.logged)).not.toContain(TOKEN)
  })
}

const SAID: readonly (readonly [reason: string, told: RegExp, Meddle])[] = [
  ['It answered with 503', /cannot be asked now/, () => ({ status: 503, body: { error: { code: `no-${TOKEN}` } } })],
  [
    'It answered with 404 (agent_offline)',
    /does not take it for this agent/,
    ({ path }) =>
      path.endsWith('/lock') ? { status: 404, body: { error: { code: 'agent_offline', message: `No agent for ${TOKEN}` } } } : undefined,
  ],
  [
    'Its answer names no lock',
    /cannot be asked now/,
    ({ path }) => (path.endsWith('/lock') ? { body: { lockedAmount: '0.25' } } : undefined),
  ],
]
test.each(SAID)('the operator is told what the ledger answered: %s', async (reason, told, meddle) => {
  const { server, buy } = await sold(meddle)
  const { error } = (await (await buy()).json()) as { error: { message: string } }
  expect(error.message).toMatch(told)
  expect(server.logged.filter(({ message }) => message.includes('elsewhere')).map(({ fields }) => fields?.['reason'])).toEqual([reason])
})

test('the operator is told that no ledger listens', async () => {
  const payments = { platform: { url: 'http://127.0.0.1:1/api/payments' } }
  const { url, logged } = await startServer([seller], { payments, outbound: { allow: ['127.0.0.1'] } })
  expect((await complete(url, 'seller', { token: TOKEN })).status).toBe(402)
  expect(logged.find(({ message }) => message.includes('elsewhere'))?.fields).toMatchObject({ reason: 'ECONNREFUSED' })
})

verifies('platform.refuses', 'a ledger that settles another amount gets no answer from the agent', async () => {
  const { server, buy } = await sold(({ path }) => (path.endsWith('/settle') ? { body: { success: true, charged: '9.00' } } : undefined))
  const response = await buy()
  expect(response.status).toBe(402)
  expect(await response.text()).not.toContain('Hi')
  expect(server.logged.some(({ level, message }) => level === 'error' && message.includes('did not settle'))).toBe(true)
})

verifies('platform.once', 'a settlement whose answer is lost is repeated with the same key, and paid once', async () => {
  let lost = 0
  const { ledger, buy } = await sold((asked) => {
    if (!asked.path.endsWith('/settle') || lost > 0) return undefined
    lost++
    ledger.perform(asked)
    return 'cut'
  })
  expect((await buy()).status).toBe(200)
  expect(ledger.money).toEqual({ left: 9.75, earned: 0.25 })
  const keys = ledger.heard.filter(({ path }) => path.endsWith('/settle')).map(({ body }) => body['idempotencyKey'])
  expect(keys.length).toBe(2)
  expect(new Set(keys).size).toBe(1)
})

verifies(['platform.once', 'platform.secret'], 'a settlement that nobody answered is done after a restart', async () => {
  const data = mkdtempSync(join(tmpdir(), 'uamp-platform-'))
  let isDown = true
  const { ledger, server, buy } = await sold(
    ({ path }) => (isDown && path.endsWith('/settle') ? { status: 500, body: {} } : undefined),
    data,
  )
  expect((await buy()).status).toBe(200)
  expect(ledger.money.earned).toBe(0)
  await server.close({ graceMs: 0 })
  for (const name of readdirSync(data)) {
    if (name.includes('.db')) expect(readFileSync(join(data, name)).includes(TOKEN)).toBe(false)
  }
  isDown = false
  await startServer([seller], { ...ledger.options, data })
  await expect.poll(() => ledger.money.earned).toBe(0.25)
  expect(ledger.money.left).toBe(9.75)
})
