/** The server dies in the middle of a payment: nothing is paid twice, and what was paid is answered. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { startChild } from '../../support/child.ts'
import { verifies } from '../../support/verifies.ts'
import { startFacilitator, type LocalFacilitator } from './facilitator.ts'
import { earned, openShop, pay, signed } from './shop.ts'

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url))

async function startShop(facilitator: LocalFacilitator, ...more: readonly string[]) {
  const data = mkdtempSync(join(tmpdir(), 'uamp-x402-'))
  onTestFinished(() => rmSync(data, { recursive: true, force: true }))
  const program = [here('child.mjs'), data, facilitator.url, ...more]
  return { data, child: await startChild(data, { program }) }
}

/** Resolves when the facilitator is asked for `where`. What it does then is up to `act`. */
function reached(facilitator: LocalFacilitator, where: string, act: NonNullable<LocalFacilitator['act']>): Promise<void> {
  return new Promise((resolve) => {
    facilitator.act = async (path, honest, response) => {
      if (path !== where) return honest()
      const answer = await act(path, honest, response)
      resolve()
      return answer
    }
  })
}

const settled = ({ asked }: LocalFacilitator): number => asked.filter((path) => path === '/settle').length

test('between verify and settle: nothing was paid, and the payment can be made again', { timeout: 60_000 }, async () => {
  const facilitator = await startFacilitator()
  const { data, child } = await startShop(facilitator, 'wait')
  const payment = await signed(child.url)
  const verified = reached(facilitator, '/verify', (_, honest) => honest())
  const lost = pay(child.url, payment).catch(() => 'lost')
  await verified
  await child.kill()
  expect(await lost).toBe('lost')
  facilitator.act = undefined
  const server = await openShop({ data, facilitator })
  expect([settled(facilitator), await earned(server)]).toEqual([0, '0.00'])
  expect((await pay(server.url, payment)).said).toBe('Thank you')
  expect([facilitator.moved.length, await earned(server)]).toEqual([1, '0.01'])
})

test.each([
  ['before the money moves', () => Promise.resolve(undefined)],
  [
    'when the money has moved',
    async (honest: () => Promise<object>) => {
      await honest()
      return undefined
    },
  ],
])('in settle, %s: whoever paid gets the answer, once', { timeout: 60_000 }, async (_, act) => {
  const facilitator = await startFacilitator()
  const { data, child } = await startShop(facilitator)
  const payment = await signed(child.url)
  const asked = reached(facilitator, '/settle', (__, honest) => act(honest))
  const lost = pay(child.url, payment).catch(() => undefined)
  await asked
  await child.kill()
  const told = await lost
  facilitator.act = undefined
  const server = await openShop({ data, facilitator })
  const again = await pay(server.url, payment)
  expect([told?.said, again.said].filter((said) => said !== undefined)).toEqual(['Thank you'])
  expect([facilitator.moved.length, await earned(server)]).toEqual([1, '0.01'])
  expect((await pay(server.url, payment)).status).toBe(402)
  expect([facilitator.moved.length, await earned(server)]).toEqual([1, '0.01'])
})

verifies('x402.killed', 'between settle and end: the money is there, and nobody pays twice', async () => {
  const facilitator = await startFacilitator()
  const { data, child } = await startShop(facilitator)
  const payment = await signed(child.url)
  const told = reached(facilitator, '/settle', (_, honest) => honest())
  const lost = pay(child.url, payment).catch(() => undefined)
  await told
  await child.kill()
  facilitator.act = undefined
  const server = await openShop({ data, facilitator })
  const again = await pay(server.url, payment)
  // It may have died before the end was stored, or after it.
  expect([(await lost)?.said, again.said].filter((said) => said !== undefined).length).toBeLessThanOrEqual(1)
  expect([facilitator.moved.length, await earned(server)]).toEqual([1, '0.01'])
  expect((await pay(server.url, payment)).status).toBe(402)
})
