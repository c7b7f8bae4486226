/** What operators see of payments. */
import { expect, test } from 'vitest'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import type { Json } from '../../src/protocol/json.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import { otherLedger, TOKEN } from '../support/other-ledger.ts'
import { complete, startPaid } from '../support/paying.ts'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startServer } from '../support/server.ts'

const seller = defineAgent(
  'seller',
  async function* () {
    yield 'Hi'
  },
  { price: { call: '0.25' } },
)

async function metricsOf(url: string): Promise<Record<string, number>> {
  const text = await (await fetch(`${url}/metrics`)).text()
  return Object.fromEntries(
    [...text.matchAll(/^(uamp_(?:payments|ledger)\S*) (\S+)$/gm)].map(([, name = '', value]) => [name, Number(value)]),
  )
}

test('payments are counted by what became of them, and those that wait elsewhere are told', async () => {
  const ledger = await otherLedger(({ path }) => (path.endsWith('/settle') ? { status: 503, body: {} } : undefined))
  const { url, token } = await startPaid(seller, 'memory', ledger.options)
  expect(await metricsOf(url)).toEqual({ uamp_payments_unsettled: 0, uamp_ledger_problems: 0 })
  const { text } = await token('0.30')
  for (const each of [text, text, TOKEN]) await complete(url, 'seller', { token: each })
  expect(await metricsOf(url)).toEqual({
    'uamp_payments_total{outcome="accepted"}': 2,
    'uamp_payments_total{outcome="insufficient_balance"}': 1,
    uamp_payments_unsettled: 1,
    uamp_ledger_problems: 0,
  })
})

test('a ledger elsewhere that settles nothing is sold no more than a thousand answers, and fills no log', async () => {
  const data = mkdtempSync(join(tmpdir(), 'uamp-waiting-'))
  const store = sqliteStore({ path: join(data, 'uamp.db') })
  for (let n = 0; n < 1_000; n++) {
    const value: Json = { id: `pay_${n}`, tenant: 'default', lock: `l${n}`, amount: '250000000', currency: 'USD', agent: 'seller', at: n }
    const index = [['money-platform', String(n).padStart(16, '0')] as const]
    await store.set(`default/money-platform/pay_${n}`, value, { index })
  }
  await store.close()
  let isDown = true
  const ledger = await otherLedger(({ path }) =>
    isDown && path.endsWith('/settle') ? { status: 503, body: {} } : { body: { charged: '0.25' } },
  )
  const { url, logged } = await startServer(seller, { ...ledger.options, data })
  expect((await complete(url, 'seller', { token: TOKEN })).status).toBe(402)
  expect(ledger.heard.some(({ path }) => path.endsWith('/verify'))).toBe(false)
  const lines = () => logged.filter(({ message }) => message.includes('elsewhere'))
  await expect.poll(() => lines().at(-1)?.fields, { timeout: 20_000 }).toMatchObject({ payments: 1_000 })
  expect(lines().length).toBeLessThan(10)
  isDown = false
  await expect.poll(async () => (await metricsOf(url))['uamp_payments_unsettled'], { timeout: 20_000 }).toBe(0)
})
