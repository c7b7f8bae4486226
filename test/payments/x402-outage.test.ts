/** Facilitators that are away for longer than a payment is valid, or slow. */
import { randomBytes } from 'node:crypto'
import { mkdtempSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, onTestFinished, test, vi } from 'vitest'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { startServer } from '../support/server.ts'

const DAY_MS = 86_400_000
const NETWORK = 'eip155:84532'
const PAY_TO = `0x${'1'.repeat(40)}`
const shop = defineAgent(
  'shop',
  async function* () {
    yield 'Thank you'
  },
  { price: { call: '0.01' } },
)

type Mood = 'honest' | 'moves the money and says nothing' | 'down'

/** Takes every signature, and remembers what it has moved. */
async function facilitator() {
  const [moved, state] = [new Set<string>(), { mood: 'honest' as Mood, crowd: 0 }]
  const waiting: (() => void)[] = []
  /** Resolves when so many requests wait for their answers as are to be a crowd. */
  const gathered = (): Promise<void> => {
    const passed = new Promise<void>((resolve) => waiting.push(resolve))
    if (waiting.length >= state.crowd) for (const pass of waiting.splice(0)) pass()
    return passed
  }
  const server = createServer((request, response) => {
    void (async () => {
      const { paymentPayload } = JSON.parse(await text(request)) as { paymentPayload: ReturnType<typeof proof> }
      const { from: payer, nonce } = paymentPayload.payload.authorization
      const isSettled = request.url === '/settle'
      await gathered()
      if (state.mood === 'down') return request.socket.destroy()
      if (isSettled) moved.add(nonce)
      if (isSettled && state.mood !== 'honest') return request.socket.destroy()
      response.end(JSON.stringify(isSettled ? { success: true, payer, transaction: nonce, network: NETWORK } : { isValid: true, payer }))
    })()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return Object.assign(state, { moved, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` })
}

function proof() {
  const hex = (bytes: number): string => `0x${randomBytes(bytes).toString('hex')}`
  const [from, value, validBefore] = [hex(20), '10000', `${Math.floor(Date.now() / 1000) + 300}`]
  const asset = '0x036CbD53842c5426634e7929541eC2318f3dCF7e'
  return {
    x402Version: 2,
    accepted: { scheme: 'exact', network: NETWORK, amount: value, asset, payTo: PAY_TO },
    payload: { signature: hex(65), authorization: { from, to: PAY_TO, value, validAfter: '0', validBefore, nonce: hex(32) } },
  }
}

async function world() {
  const there = await facilitator()
  const data = mkdtempSync(join(tmpdir(), 'uamp-outage-'))
  const payments = { x402: { payTo: PAY_TO, network: NETWORK, facilitator: there.url } }
  const lines: string[] = []
  const log = (level: string, message: string, fields: object = {}): void =>
    void lines.push(`${level} ${message} ${JSON.stringify(fields)}`)
  const open = () => startServer(shop, { data, payments, log, outbound: { allow: ['127.0.0.1'] } })
  const buy = async (url: string, payment: object): Promise<number> => {
    const headers = { 'content-type': 'application/json', 'payment-signature': Buffer.from(JSON.stringify(payment)).toString('base64') }
    const body = JSON.stringify({ model: 'shop', messages: [{ role: 'user', content: 'hello' }] })
    return (await fetch(`${url}/v1/chat/completions`, { method: 'POST', headers, body })).status
  }
  return { there, open, buy, lines }
}

test('a payment is not given up while its facilitator is silent, and is a credit when that speaks again', async () => {
  const { there, open, buy, lines } = await world()
  const real = Date.now
  const clock = vi.spyOn(Date, 'now').mockImplementation(real)
  onTestFinished(() => clock.mockRestore())
  const payment = proof()
  there.mood = 'moves the money and says nothing'
  const first = await open()
  expect(await buy(first.url, payment)).toBe(402)
  await first.close()

  clock.mockImplementation(() => real() + 2 * DAY_MS)
  there.mood = 'down'
  const second = await open()
  await expect.poll(() => lines.filter((line) => line.includes('could not be settled yet')).length).toBeGreaterThan(1)
  await second.close()
  expect(lines.filter((line) => line.includes('given up'))).toEqual([])

  clock.mockImplementation(() => real() + 3 * DAY_MS)
  there.mood = 'honest'
  const third = await open()
  await expect.poll(async () => (await third.ledger.check()).inside).toEqual({ USD: '0.01' })
  expect([await buy(third.url, payment), await buy(third.url, payment)]).toEqual([200, 402])
  expect(there.moved.size).toBe(1)
})

test('the operator is told why payments cannot be verified', async () => {
  const { there, open, buy, lines } = await world()
  there.mood = 'down'
  const { url } = await open()
  expect(await buy(url, proof())).toBe(402)
  expect(lines.find((line) => line.startsWith('warn A payment could not be verified'))).toContain(there.url)
})

test('payments do not wait for each other at a facilitator that is slow', async () => {
  const { there, open, buy } = await world()
  const { url, ledger } = await open()
  there.crowd = 32
  const bought = await Promise.all(Array.from({ length: there.crowd }, () => buy(url, proof())))
  expect(bought.filter((status) => status === 200)).toHaveLength(there.crowd)
  expect((await ledger.check()).inside).toEqual({ USD: '0.32' })
})
