/** What is left of a caller's money when an operator removes their data. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { remoteStorage } from '../../src/serve/storage/control.ts'
import { startServer } from '../support/server.ts'
import { asking, SECRETS } from './rest-support.ts'

const shop = defineAgent(
  'shop',
  async function* () {
    yield 'Hi'
  },
  { price: { call: '0.25', free: { calls: 1, per: 'month' } } },
)

test('a caller whose data is removed keeps their money, and gets no free calls anew', async () => {
  const data = mkdtempSync(join(tmpdir(), 'uamp-pruned-'))
  onTestFinished(() => rmSync(data, { recursive: true, force: true, maxRetries: 5 }))
  const options = { data, tokens: SECRETS, grants: { bank: ['bank'] as const }, payments: { perDay: { USD: '0.25' } } }
  const first = await startServer(shop, options)
  const buy = async (url: string): Promise<number> => {
    const headers = { authorization: `Bearer ${SECRETS.alice}` }
    const body = JSON.stringify({ model: 'shop', messages: [{ role: 'user', content: 'Hello' }] })
    return (await fetch(`${url}/v1/chat/completions`, { method: 'POST', headers, body })).status
  }
  await asking(first.url).does('bank', 'POST deposit', { principal: 'alice', amount: '5' })
  expect([await buy(first.url), await buy(first.url), await buy(first.url)]).toEqual([200, 200, 402])
  await remoteStorage(data).prune({ principal: 'alice', dryRun: false })
  await first.close({ graceMs: 0 })
  const { url } = await startServer(shop, options)
  expect(await buy(url)).toBe(402)
  const { does } = asking(url)
  expect(await does('alice', 'GET balance')).toMatchObject({ balance: '4.75' })
  expect((await does('alice', 'GET statements'))['entries']).toHaveLength(2)
})
