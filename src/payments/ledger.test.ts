import { describe, expect, onTestFinished, test } from 'vitest'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { storedSigner } from '../auth/signer.ts'
import type { Asked } from '../core/ports/payments.ts'
import type { Operation, Store } from '../core/ports/store.ts'
import { verifies } from '../../test/support/verifies.ts'
import { aesKeys } from '../stores/file-keys.ts'
import { memoryStore } from '../stores/memory.ts'
import { sqliteStore } from '../stores/sqlite.ts'
import { accountOf, Accounts } from './accounts.ts'
import { Ledger, type LedgerOptions } from './ledger.ts'

const UNIT = 10n ** 9n
const T = 'tenant/ä'
const ALICE = accountOf.principal('https://x/y|ü', 'USD')
const SHOP = accountOf.agent('shop', 'USD')
const DAY = 86_400_000

/** One for all: a key takes long to make. */
const signer = storedSigner({ store: memoryStore(), keys: aesKeys(new Uint8Array(32)), now: Date.now })

const stores: [name: string, open: () => Store][] = [
  ['memory', () => memoryStore()],
  [
    'SQLite',
    () => {
      const folder = mkdtempSync(join(tmpdir(), 'uamp-ledger-'))
      onTestFinished(() => rmSync(folder, { recursive: true }))
      const store = sqliteStore({ path: join(folder, 'uamp.db'), onError: () => undefined })
      onTestFinished(() => store.close())
      return store
    },
  ],
]

describe.each(stores)('a ledger on %s', (_, open) => {
  /** A clock that a test sets, and a store whose batches fail when it says so. */
  async function start(more: Partial<LedgerOptions> = {}) {
    const real = open()
    const world = { now: Date.UTC(2026, 10, 18), failAt: Infinity, batches: 0 }
    const batch: Store['batch'] = (operations: readonly Operation[], options) =>
      ++world.batches === world.failAt ? Promise.reject(new Error('The disk is full')) : real.batch(operations, options)
    const store = new Proxy(real, {
      get: (target, name) => {
        if (name === 'batch') return batch
        const value: unknown = Reflect.get(target, name)
        return typeof value === 'function' ? (value as (...args: unknown[]) => unknown).bind(target) : value
      },
    })
    const now = () => world.now
    const options = { store, signer, now, monotonic: now, ownUrl: () => 'http://localhost', log: () => undefined, ...more }
    const ledger = new Ledger(options)
    const issue = (amount: bigint, settings: { ttlMs?: number; maxDepth?: number; source?: string } = {}) =>
      ledger.tokens.issue({
        ...{ tenant: T, owner: 'https://x/y|ü', agents: ['shop'], amount, currency: 'USD', ttlMs: DAY, maxDepth: 3, source: ALICE },
        ...settings,
      })
    await ledger.transfer(T, { kind: 'deposit', from: accountOf.outside('USD'), to: ALICE, amount: 100n * UNIT, currency: 'USD' })
    const balance = async (account: string) => (await ledger.accounts.get(T, account)).balance
    const asked = (amount: bigint, id = 'alice'): Asked => ({
      principal: { tenant: T, id, scopes: [] },
      ...{ agent: 'shop', session: 's', turn: 't', response: 'r', question: 'q', amount, currency: 'USD' },
    })
    /** The sums are right, and another start of the process knows the same. */
    const isRight = async (): Promise<void> => {
      expect((await ledger.check()).problems).toEqual([])
      const other = new Accounts(real)
      for (const id of [ALICE, SHOP, accountOf.outside('USD')]) expect((await other.get(T, id)).balance).toBe(await balance(id))
      expect((await new Ledger(options).check()).problems).toEqual([])
    }
    return { ledger, world, store, real, issue, balance, asked, isRight, options }
  }

  async function pay(ledger: Ledger, asked: Asked, text: string): Promise<boolean> {
    const lock = await ledger.authorise(asked, { scheme: 'token', token: text })
    if ('refused' in lock) return false
    const { operations, done } = lock.settle(asked.amount)
    try {
      await ledger.write(operations)
      done()
      return true
    } catch (thrown) {
      done(thrown)
      return false
    }
  }

  test('64 at once spend no more than there is', async () => {
    const { ledger, issue, asked, balance, isRight } = await start()
    const { text, token } = await issue(10n * UNIT)
    const paid = await Promise.all(Array.from({ length: 64 }, () => pay(ledger, asked(UNIT), text)))
    expect(paid.filter(Boolean)).toHaveLength(10)
    expect(await balance(accountOf.token(token.id))).toBe(0n)
    expect(await balance(SHOP)).toBe(10n * UNIT)
    await isRight()
  })

  test('200 movements are read back from a balance that was written down', async () => {
    const { ledger, issue, asked, balance, isRight, real } = await start()
    const { text } = await issue(50n * UNIT)
    for (let at = 0; at < 25; at++) await Promise.all(Array.from({ length: 8 }, () => pay(ledger, asked(UNIT / 8n), text)))
    expect(await balance(SHOP)).toBe(25n * UNIT)
    await isRight()
    const account = await new Accounts(real).read(T, SHOP, { fromFirst: true })
    expect([account.balance, account.seq]).toEqual([25n * UNIT, 200])
  })

  test('a store that fails at any batch loses and makes no money', async () => {
    for (let failAt = 1; failAt < 14; failAt++) {
      const { ledger, world, issue, asked, balance, isRight } = await start()
      world.batches = 0
      world.failAt = failAt
      const quiet = async <R>(run: () => Promise<R>): Promise<R | undefined> => run().catch(() => undefined)
      const made = await quiet(() => issue(5n * UNIT))
      expect(made === undefined).toBe(failAt === 1)
      if (made) {
        const { token, text } = made
        await quiet(() => ledger.tokens.topUp(token, UNIT, ALICE))
        await pay(ledger, asked(UNIT), text)
        const lock = await quiet(() => ledger.locks.open(token, { agent: 'shop', openedBy: 'shop', amount: UNIT, ttlMs: DAY }))
        if (lock) {
          await quiet(() => ledger.locks.extend(lock, { amount: UNIT / 2n, token }))
          const settled = await quiet(() => ledger.locks.settle(lock, { amount: UNIT / 4n, key: 'k', release: false }))
          const payment = settled?.payment === undefined ? undefined : await ledger.payment(T, settled.payment)
          if (payment) await quiet(() => ledger.refund(T, payment))
          await quiet(() => ledger.locks.release(lock))
        }
        const child = await quiet(() => ledger.tokens.delegate(token, { agents: ['x'], amount: UNIT }))
        if (child) await quiet(() => ledger.tokens.end(child.token))
        await quiet(() => ledger.tokens.revoke(token))
      }
      await isRight()
      world.now += 3 * DAY
      // The first one may be the one that fails.
      for (let sweep = 0; sweep < 3; sweep++) await quiet(() => ledger.sweep())
      expect([failAt, (await balance(ALICE)) + (await balance(SHOP))]).toEqual([failAt, 100n * UNIT])
      await isRight()
    }
  })

  verifies('payments-rest:expired', 'what expires comes back through the tokens that it was split off from', async () => {
    const { ledger, world, issue, balance, isRight } = await start()
    const { token } = await issue(10n * UNIT)
    const child = await ledger.tokens.delegate(token, { agents: ['x'], amount: 6n * UNIT })
    const grandchild = await ledger.tokens.delegate(child.token, { agents: ['y'], amount: 3n * UNIT, expiresAt: world.now + 1000 })
    const lock = await ledger.locks.open(grandchild.token, { agent: 'y', openedBy: 'y', amount: UNIT, ttlMs: DAY })
    expect(lock.expiresAt).toBe(grandchild.token.expiresAt)
    world.now += 2000
    await ledger.sweep()
    expect(await balance(accountOf.token(child.token.id))).toBe(6n * UNIT)
    await expect(ledger.locks.settle(lock, { amount: UNIT, key: 'k', release: true })).rejects.toMatchObject({ code: 'conflict' })
    world.now += DAY
    await ledger.sweep()
    expect(await balance(ALICE)).toBe(100n * UNIT)
    await isRight()
  })

  test('a token that is revoked while its money is locked gets none of it back: its owner does', async () => {
    const { ledger, world, issue, asked, balance, isRight } = await start()
    const { token, text } = await issue(10n * UNIT)
    const rest = await ledger.locks.open(token, { agent: 'shop', openedBy: 'shop', amount: 4n * UNIT, ttlMs: DAY })
    const turn = await ledger.authorise(asked(2n * UNIT), { scheme: 'token', token: text })
    if ('refused' in turn) throw new Error(turn.message)
    await ledger.tokens.revoke(token)
    expect(await balance(ALICE)).toBe(94n * UNIT)
    expect(await ledger.authorise(asked(1n), { scheme: 'token', token: text })).toMatchObject({ refused: 'token_invalid' })
    await ledger.locks.settle(rest, { amount: UNIT, key: 'k', release: true })
    const { operations, done } = turn.settle(UNIT)
    await ledger.write(operations)
    done()
    world.now += 2 * 60_000
    await ledger.sweep()
    expect([await balance(ALICE), await balance(SHOP)]).toEqual([98n * UNIT, 2n * UNIT])
    await isRight()
  })

  test('a movement that cannot be is none: between currencies, to itself, of nothing', async () => {
    const { ledger, isRight } = await start()
    const move = { kind: 'deposit', from: accountOf.outside('USD'), to: ALICE, amount: UNIT, currency: 'USD' } as const
    const wrong = [{ to: accountOf.principal('x', 'EUR') }, { currency: 'EUR' }, { to: move.from }, { amount: 0n }, { amount: -1n }]
    for (const each of wrong) await expect(ledger.transfer(T, { ...move, ...each })).rejects.toMatchObject({ code: 'internal' })
    await isRight()
  })

  test('another tenant has none of it', async () => {
    const { ledger, issue, asked } = await start()
    const { text, token } = await issue(UNIT)
    const elsewhere = { ...asked(1n), principal: { tenant: 'tenant', id: 'alice', scopes: [] } }
    expect(await ledger.authorise(elsewhere, { scheme: 'token', token: text })).toMatchObject({ refused: 'token_invalid' })
    expect(await ledger.tokens.get('tenant', token.id)).toBeUndefined()
    expect((await ledger.accounts.get('tenant', ALICE)).balance).toBe(0n)
  })

  test('a day has its bound, whatever the clock does', async () => {
    const { ledger, world, issue, asked } = await start({ perDay: { USD: 2n * UNIT } })
    const { text } = await issue(20n * UNIT, { ttlMs: 30 * DAY })
    const spend = (): Promise<boolean> => pay(ledger, asked(UNIT), text)
    expect([await spend(), await spend(), await spend()]).toEqual([true, true, false])
    world.now += DAY
    expect(await spend()).toBe(true)
    world.now -= DAY
    expect(await spend()).toBe(false)
    world.now += DAY
    expect([await spend(), await spend()]).toEqual([true, false])
    // Somebody else who has the token has a day of their own.
    expect(await pay(ledger, asked(UNIT, 'bob'), text)).toBe(true)
  })

  test('what could not be stored is not spent of the day', async () => {
    const { ledger, world, issue, asked } = await start({ perDay: { USD: UNIT } })
    const { text } = await issue(5n * UNIT)
    world.failAt = world.batches + 1
    expect(await pay(ledger, asked(UNIT), text)).toBe(false)
    expect(await pay(ledger, asked(UNIT), text)).toBe(true)
  })

  test('free calls are counted by window, and given back', async () => {
    const { ledger, world, asked } = await start()
    const take = () => ledger.takeFree(asked(0n), { calls: 2, per: 'month' })
    const [one, two] = [await take(), await take()]
    expect(await take()).toBeUndefined()
    one?.settle(0n)
    const { operations = [], done = () => undefined } = two?.settle(1n) ?? {}
    await ledger.write(operations)
    done()
    expect(await take()).toBeDefined()
    expect(await take()).toBeUndefined()
    world.now += 31 * DAY
    expect(await take()).toBeDefined()
  })

  test('accounts that leave memory are never two', async () => {
    const { real, issue, ledger } = await start()
    await issue(UNIT)
    const accounts = new Accounts(real, 10)
    const first = await accounts.get(T, ALICE)
    expect(first.lock(50n * UNIT)).toBe(true)
    const held = await accounts.get(T, SHOP)
    for (let at = 0; at < 100; at++) await accounts.get(T, `principal:USD:${at}`)
    expect(await accounts.get(T, ALICE)).toBe(first)
    // It was dropped, but somebody still has it.
    expect(await accounts.get(T, SHOP)).toBe(held)
    expect((await ledger.check()).problems).toEqual([])
  })
})
