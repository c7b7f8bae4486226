/** Payment Mandates of AP2 (SD-JWT VC) over UAMP events. */
import { createHash } from 'node:crypto'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { beforeAll, describe, expect, test } from 'vitest'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { Accounts } from '../../src/payments/accounts.ts'
import { ap2Config, Ap2Method } from '../../src/payments/ap2.ts'
import { formatAmount } from '../../src/protocol/money.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { startServer } from '../support/server.ts'
import { isEnd } from '../support/talk.ts'
import { verifies } from '../support/verifies.ts'
import { overWebSocket, type Wire } from '../support/wire.ts'

const ISSUER = 'https://mandates.example'
const seconds = (from: number): number => Math.floor(Date.now() / 1000) + from

const shop = defineAgent(
  'shop',
  async function* () {
    yield 'Thank you'
  },
  { price: { call: '0.05' } },
)

let keys: { own: CryptoKey; foreign: CryptoKey; jwk: object }
beforeAll(async () => {
  const [{ privateKey, publicKey }, other] = [await generateKeyPair('ES256'), await generateKeyPair('ES256')]
  keys = { own: privateKey, foreign: other.privateKey, jwk: { ...(await exportJWK(publicKey)), kid: 'k1', alg: 'ES256', use: 'sig' } }
})

const CLAIMS = {
  vct: 'mandate.payment.1',
  transaction_id: 'tx-1',
  payee: { id: 'shop', name: 'The shop' },
  payment_amount: { amount: 5, currency: 'USD' },
}

interface Making {
  readonly key?: CryptoKey
  readonly typ?: string
  /** Claims that are disclosed beside the signed ones. */
  readonly disclose?: Readonly<Record<string, unknown>>
  readonly lie?: boolean
}

/** A mandate as its issuer writes it. */
async function mandate(
  claims: object = {},
  { key = keys.own, typ = 'dc+sd-jwt', disclose = {}, lie = false }: Making = {},
): Promise<string> {
  const disclosures = Object.entries(disclose).map((entry) => Buffer.from(JSON.stringify(['salt', ...entry])).toString('base64url'))
  const digests = disclosures.map((each) =>
    createHash('sha256')
      .update(lie ? `${each}x` : each)
      .digest('base64url'),
  )
  const all = { iss: ISSUER, exp: seconds(300), ...CLAIMS, ...claims, ...(digests.length > 0 && { _sd: digests, _sd_alg: 'sha-256' }) }
  const jwt = await new SignJWT(all).setProtectedHeader({ alg: 'ES256', kid: 'k1', typ }).sign(key)
  return [jwt, ...disclosures, ''].join('~')
}

async function open(configured = true) {
  const ap2 = { issuers: { [ISSUER]: { keys: [keys.jwk] } }, payee: 'shop' }
  const server = await startServer(shop, configured ? { payments: { ap2 } } : {})
  return { ...server, ask: () => asked(server.url) }
}

/** A question to the shop that waits for its payment. */
async function asked(url: string): Promise<Wire> {
  const wire = await overWebSocket(url)
  await wire.open()
  await wire.send({ type: 'input.text', text: 'hello' })
  await wire.send({ type: 'response.create' })
  await wire.next('payment.required')
  return wire
}

async function pays(wire: Wire, payment: object) {
  await wire.send({ type: 'payment.submit', payment: { scheme: 'ap2', ...payment } })
  return wire.next((event) => event.type === 'payment.error' || isEnd(event))
}

verifies('ap2.verified', 'a mandate of a known issuer pays, once', async () => {
  const { ask, ledger } = await open()
  const text = await mandate()
  const done = await pays(await ask(), { ap2_credential: { sd_jwt: text } })
  expect(done).toMatchObject({
    type: 'response.done',
    response: { extensions: { uamp: { payments: [{ scheme: 'ap2', amount: '0.05' }] } } },
  })
  expect(await pays(await ask(), { token: text })).toMatchObject({ type: 'payment.error', code: 'token_invalid' })
  const { sums, inside, problems } = await ledger.check()
  expect([sums, inside, problems]).toEqual([{ USD: '0.00' }, { USD: '0.05' }, []])
})

test('claims may be disclosed, and a mandate of more than the price pays the price', async () => {
  const { ask, ledger } = await open()
  const { payment_amount: _, ...rest } = CLAIMS
  const amount = { payment_amount: { amount: 700, currency: 'USD' } }
  const text = await mandate({ ...rest, payment_amount: undefined }, { disclose: amount })
  expect(await pays(await ask(), { token: text })).toMatchObject({ type: 'response.done' })
  expect((await ledger.check()).inside).toEqual({ USD: '0.05' })
})

test('a mandate that discloses its transaction once, and once not, pays once', async () => {
  const { ask, ledger } = await open()
  const text = await mandate({ transaction_id: undefined, jti: 'mandate-1' }, { disclose: { transaction_id: 'tx-1' } })
  expect(await pays(await ask(), { token: text })).toMatchObject({ type: 'response.done' })
  const [jwt] = text.split('~')
  expect(await pays(await ask(), { token: `${jwt}~` })).toMatchObject({ type: 'payment.error', code: 'token_invalid' })
  expect((await ledger.check()).inside).toEqual({ USD: '0.05' })
})

test('a mandate pays no more than the amount that its payment names', async () => {
  const { ask, ledger } = await open()
  const token = await mandate()
  expect(await pays(await ask(), { token, amount: '0.01' })).toMatchObject({ type: 'payment.error', code: 'insufficient_balance' })
  expect(await pays(await ask(), { token, amount: 'five' })).toMatchObject({ type: 'payment.error', code: 'payment_failed' })
  expect((await ledger.check()).movements).toBe(0)
})

describe('is refused', () => {
  const cases: readonly (readonly [string, () => Promise<string>, string])[] = [
    ['what is no mandate', () => Promise.resolve('worthless'), 'token_invalid'],
    ['a signature of somebody else', () => mandate({}, { key: keys.foreign }), 'token_invalid'],
    ['an issuer that nobody knows', () => mandate({ iss: 'https://other.example' }), 'token_invalid'],
    ['another kind of token', () => mandate({}, { typ: 'JWT' }), 'token_invalid'],
    ['another kind of mandate', () => mandate({ vct: 'mandate.payment.open.1' }), 'token_invalid'],
    ['a mandate that has expired', () => mandate({ exp: seconds(-1) }), 'token_expired'],
    ['a mandate without an end', () => mandate({ exp: undefined }), 'token_invalid'],
    ['a mandate that names no transaction', () => mandate({ transaction_id: undefined }), 'token_invalid'],
    ['another payee', () => mandate({ payee: { id: 'other' } }), 'token_invalid'],
    ['another currency', () => mandate({ payment_amount: { amount: 5, currency: 'EUR' } }), 'token_invalid'],
    ['too little', () => mandate({ payment_amount: { amount: 4, currency: 'USD' } }), 'insufficient_balance'],
    ['an amount that is no whole number', () => mandate({ payment_amount: { amount: 5.5, currency: 'USD' } }), 'token_invalid'],
    ['a negative amount', () => mandate({ payment_amount: { amount: -5, currency: 'USD' } }), 'token_invalid'],
    ['a disclosure that does not belong to it', () => mandate({}, { disclose: { extra: 1 }, lie: true }), 'token_invalid'],
    ['a disclosure in place of a signed claim', () => mandate({}, { disclose: { payee: 'shop' } }), 'token_invalid'],
  ]
  test.each(cases)('%s', async (_, make, code) => {
    const { ask, ledger } = await open()
    expect(await pays(await ask(), { ap2_credential: { sd_jwt: await make() } })).toMatchObject({ type: 'payment.error', code })
    expect((await ledger.check()).movements).toBe(0)
  })
})

verifies('ap2.unknown-issuer', 'without a configured issuer every mandate is refused', async () => {
  const { ask } = await open(false)
  const told = await pays(await ask(), { ap2_credential: { sd_jwt: await mandate() } })
  expect(told).toMatchObject({ type: 'payment.error', code: 'token_invalid' })
})

test('a mandate pays in the end, however many other accounts were used meanwhile', async () => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const store = memoryStore()
  // Of all accounts that nobody holds, it keeps one.
  const accounts = new Accounts(store, 1)
  const config = ap2Config({ issuers: { [ISSUER]: { keys: [keys.jwk] } } })
  const method = new Ap2Method({ config, accounts, store, now: Date.now })
  const principal = { tenant: 'default', id: 'payer', scopes: [] }
  const about = { principal, agent: 'shop', session: 's', turn: 't', response: 'r', question: 'q' }
  const found = await method.authorise({ ...about, amount: 50_000_000n, currency: 'USD' }, { scheme: 'ap2', token: await mandate() })
  if ('refused' in found) return expect.unreachable()
  for (let other = 0; other < 10; other++) {
    await accounts.get('default', `principal:USD:${other}`)
    await new Promise((resolve) => setImmediate(resolve))
    collect()
  }
  const { operations, done } = found.settle(50_000_000n)
  await store.batch(operations)
  done()
  expect(formatAmount((await accounts.get('default', 'agent:USD:shop')).balance)).toBe('0.05')
})
