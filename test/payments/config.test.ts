import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { assemble, examine } from '../../src/config/assemble.ts'
import { Modules } from '../../src/config/modules.ts'
import { readSource } from '../../src/config/source.ts'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import type { AgentPrice } from '../../src/core/ports/payments.ts'
import type { PaymentSettings } from '../../src/payments/settings.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'

function context() {
  return { env: { OPENAI_API_KEY: 'sk-of-a-test-123456' }, modules: new Modules(), log: () => undefined }
}

async function sourceOf(yaml: string, by = context()) {
  const file = join(mkdtempSync(join(tmpdir(), 'uamp-prices-')), 'uamp.config.yaml')
  writeFileSync(file, yaml)
  return readSource(file, by.modules)
}

verifies('prices.config', 'prices are exact texts, and short numbers count as theirs', async () => {
  const by = context()
  const source = await sourceOf(
    `agents:
  - name: seller
    model: openai/gpt-5-mini
    price: { call: 0.01, input: "3", output: 15, cached: "0.3", currency: EUR, free: { calls: 10, per: day } }
  - name: reseller
    price: { call: "0.05" }
    remote: { url: https://agents.example, protocol: events }
payments:
  perDay: { USD: 20 }
  platform: { url: https://pay.example/api/payments, token: secret-of-the-seller }
`,
    by,
  )
  const { agents, settings } = await assemble(source, by)
  expect(agents.map(({ price }) => price)).toEqual([
    { call: '0.01', input: '3', output: '15', cached: '0.3', currency: 'EUR', free: { calls: 10, per: 'day' } },
    { call: '0.05' },
  ])
  expect(settings.payments).toEqual({
    perDay: { USD: '20' },
    platform: { url: 'https://pay.example/api/payments', token: 'secret-of-the-seller' },
  })
})

verifies('prices.config', 'each mistake is told with its line', async () => {
  const by = context()
  const source = await sourceOf(
    `agents:
  - name: seller
    model: openai/gpt-5-mini
    price:
      call: -1
      input: 1e-12
      output: cheap
      currency: "$"
      free: { calls: 1.5, per: week }
      cashed: "1"
payments:
  perDay: { USD: "-5" }
`,
    by,
  )
  const { mistakes } = await examine(source, by)
  const lines = mistakes.map((mistake) => Number(/:(\d+):/.exec(mistake)?.[1]))
  expect(lines).toEqual([5, 6, 7, 8, 9, 9, 10, 12])
  expect(mistakes[1]).toContain('quotes')
  expect(mistakes[6]).toContain('did you mean "cached"')
})

verifies('prices.config', 'a ledger elsewhere needs an address', async () => {
  const by = context()
  const source = await sourceOf('agents: [{ name: a, model: openai/gpt-5 }]\npayments:\n  platform: { url: nowhere }\n', by)
  expect((await examine(source, by)).mistakes).toEqual([expect.stringContaining(':3: payments.platform.url is not an address')])
})

verifies('prices.config', 'the price of a tool that is not there is a mistake', async () => {
  const by = context()
  const source = await sourceOf(
    `agents:
  - name: seller
    model: openai/gpt-5-mini
    price: { tools: { serch: "0.02" } }
`,
    by,
  )
  await expect(assemble(source, by)).rejects.toThrow('is no tool of this agent')
})

test('what newcomers write is refused with what to write instead', async () => {
  const by = context()
  const source = await sourceOf(
    `agents:
  - name: seller
    model: openai/gpt-5-mini
    price: { call: 0.01, currency: usd, free: 10 }
payments:
  perDay: 20
  x402: { payTo: 0x209693Bc6afc0C5328bA36FaF03C514EF312287C, network: eip155:84532, facilitator: https://x402.org/facilitator }
`,
    by,
  )
  const { mistakes } = await examine(source, by)
  expect(mistakes.map((mistake) => mistake.replace(/^.*yaml:/, ''))).toEqual([
    '4: agents[0].price.currency must be the name of a currency in capitals, such as "USD"',
    '4: agents[0].price.free must be an object, such as { calls: 10, per: day }',
    '6: payments.perDay must be amounts by currency, such as { USD: "20" }',
    '7: payments.x402.payTo is read as a number: write the address in quotes',
  ])
})

test('a network of x402 that is none is told once, and by its name', async () => {
  const by = context()
  const source = await sourceOf(
    `agents:
  - { name: partner, price: { call: "0.05" }, remote: https://agents.example }
payments:
  x402: { payTo: "0x209693Bc6afc0C5328bA36FaF03C514EF312287C", network: base, facilitator: https://x402.org/facilitator }
`,
    by,
  )
  const { mistakes } = await examine(source, by)
  expect(mistakes).toEqual([expect.stringMatching(/:4: payments\.x402\.network must be an EVM network, such as "eip155:8453"$/)])
})

test('a chain whose contract nobody knows needs its address, and a price alone needs a field', async () => {
  const by = context()
  const source = await sourceOf(
    `agents:
  - name: seller
    model: openai/gpt-5-mini
    price: "0.05"
payments:
  x402: { payTo: "0x209693Bc6afc0C5328bA36FaF03C514EF312287C", network: eip155:1, facilitator: https://x402.org/facilitator }
`,
    by,
  )
  const { mistakes } = await examine(source, by)
  expect(mistakes).toEqual([
    expect.stringMatching(/:4: agents\[0\]\.price must be an object, such as \{ call: "0\.01" \} or \{ input: "3", output: "15" \}$/),
    expect.stringMatching(
      /:6: payments\.x402\.asset is missing: USDC is known on eip155:8453 and eip155:84532; elsewhere name a contract$/,
    ),
  ])
})

test('in code, too, a price or a bound that is misspelt is refused: it would be none', async () => {
  const priced = (price: unknown) => defineAgent('shop', async function* () {}, { price: price as AgentPrice })
  expect(() => priced({ cal: '0.01' })).toThrow('A price has no field "cal": there are currency, call, input')
  expect(() => priced('0.01')).toThrow('A price is an object such as { call: "0.05" }, but not "0.01"')
  const payments = { perday: { USD: '5' } } as PaymentSettings
  await expect(startServer(priced({ call: '0.01' }), { payments })).rejects.toThrow('payments has no field "perday": there are perDay')
})
