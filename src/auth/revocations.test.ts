import { expect, test } from 'vitest'
import { verifies } from '../../test/support/verifies.ts'
import { principalId } from '../core/basics/principal.ts'
import type { Access, Principal } from '../core/ports/access.ts'
import type { Store } from '../core/ports/store.ts'
import { memoryStore } from '../stores/memory.ts'
import { revocable, StoredRevocations } from './revocations.ts'

const OWN = 'https://agents.example'
const DAY_MS = 24 * 3_600_000

const jwt = (issuer: string, subject: string, more: Partial<Principal> = {}): Principal => ({
  tenant: 'default',
  id: principalId(issuer, subject),
  issuer,
  subject,
  scopes: ['write'],
  credential: 'jti-1',
  key: 'kid-1',
  ...more,
})
const alice: Principal = { tenant: 'default', id: 'alice', scopes: ['*'] }

async function opened(store: Store = memoryStore(), now: () => number = Date.now) {
  const open = [jwt(OWN, 'alice'), jwt(OWN, 'bob', { credential: 'jti-2' }), alice]
  const cuts: string[] = []
  const cut = (matches: (principal: Principal) => boolean, reason: string) => {
    const found = open.filter(matches)
    cuts.push(...found.map(({ id }) => `${id} ${reason}`))
    return found.length
  }
  const revocations = new StoredRevocations({ store, now, cut, ownUrl: () => OWN })
  await revocations.load()
  return { revocations, cuts, store }
}

verifies('identity.revoke-token', 'a token is revoked for its issuer, or for whoever issued it, also after a restart', async () => {
  const { revocations, store } = await opened()
  await revocations.revoke({ kind: 'token', id: 'jti-1', issuer: OWN, expiresAt: Date.now() + 60_000 })
  for (const each of [revocations, (await opened(store)).revocations]) {
    expect(each.find(jwt(OWN, 'alice'))).toBe('token')
    expect(each.find(jwt('https://other.example', 'alice'))).toBeUndefined()
    expect(each.find(jwt(OWN, 'alice', { credential: 'jti-2' }))).toBeUndefined()
    expect(each.find(alice)).toBeUndefined()
  }
  await revocations.revoke({ kind: 'token', id: 'jti-1' })
  expect(revocations.find(jwt('https://other.example', 'alice'))).toBe('token')
})

verifies('identity.revoke-key', 'what a key has signed is revoked with it', async () => {
  const { revocations, store } = await opened()
  await revocations.revoke({ kind: 'key', id: 'kid-1', issuer: 'https://other.example' })
  expect(revocations.find(jwt(OWN, 'alice'))).toBeUndefined()
  for (const each of [revocations, (await opened(store)).revocations]) expect(each.find(jwt('https://other.example', 'x'))).toBe('key')
})

verifies(
  'identity.revoke-principal',
  'a principal is revoked with the tokens that this server issued for it, until it is restored',
  async () => {
    const { revocations, store } = await opened()
    await revocations.revoke({ kind: 'principal', id: 'alice' })
    for (const each of [revocations, (await opened(store)).revocations]) {
      expect(each.find(alice)).toBe('principal')
      expect(each.find(jwt(OWN, 'alice'))).toBe('principal')
      expect(each.find(jwt(`${OWN}/agents/demo`, 'alice'))).toBe('principal')
      expect(each.find(jwt('https://other.example', 'alice'))).toBeUndefined()
      expect(each.find({ ...alice, tenant: 'other' })).toBeUndefined()
    }
    expect(await revocations.restore({ kind: 'principal', id: 'alice' })).toBe(true)
    expect(await revocations.restore({ kind: 'principal', id: 'alice' })).toBe(false)
    for (const each of [revocations, (await opened(store)).revocations]) expect(each.find(alice)).toBeUndefined()
  },
)

verifies('identity.revoke-cuts', 'open connections are cut at once, and no others', async () => {
  const { revocations, cuts } = await opened()
  expect(await revocations.revoke({ kind: 'token', id: 'jti-2', issuer: OWN })).toBe(1)
  expect(cuts).toEqual([`${principalId(OWN, 'bob')} token_revoked`])
})

test('it takes effect before the store has it', async () => {
  const { revocations } = await opened()
  const writing = revocations.revoke({ kind: 'principal', id: 'alice' })
  expect(revocations.find(alice)).toBe('principal')
  await writing
})

test('access without those who are revoked', async () => {
  const { revocations } = await opened()
  const access: Access = { schemes: ['Bearer'], authenticate: async () => alice, authorize: () => true }
  const wrapped = revocable(access, revocations)
  expect(await wrapped.authenticate({})).toBe(alice)
  expect(wrapped.authorize(alice, 'call', 'demo')).toBe(true)
  await revocations.revoke({ kind: 'principal', id: 'alice' })
  expect(await wrapped.authenticate({})).toEqual({ denied: 'revoked', message: 'The access was revoked' })
  expect(wrapped.authorize(alice, 'call', 'demo')).toBe(false)
  expect(wrapped.schemes).toEqual(['Bearer'])
})

test('a revoked token is forgotten a day after its end, and a clock that steps back does not bring it back', async () => {
  const clock = { at: Date.parse('2026-01-01') }
  const { revocations, store } = await opened(memoryStore({ now: () => clock.at }), () => clock.at)
  await revocations.revoke({ kind: 'token', id: 'jti-1', expiresAt: clock.at + 60_000 })
  clock.at += 3_600_000
  expect((await opened(store)).revocations.find(jwt(OWN, 'x'))).toBe('token')
  clock.at -= 3_590_000
  expect(revocations.find(jwt(OWN, 'x'))).toBe('token')
  clock.at += 3 * DAY_MS
  expect((await opened(store)).revocations.list()).toEqual([])
})

test('names that look like parts of keys stay apart', async () => {
  const { revocations } = await opened()
  await revocations.revoke({ kind: 'token', id: 'a/b', issuer: 'c' })
  expect(revocations.find(jwt('c', 'x', { credential: 'a/b' }))).toBe('token')
  expect(revocations.find(jwt('c/a', 'x', { credential: 'b' }))).toBeUndefined()
  await revocations.revoke({ kind: 'principal', id: 'b', tenant: 'a' })
  expect(revocations.find({ tenant: 'default', id: 'a/b', scopes: [] })).toBeUndefined()
})

test('clients that revoke tokens without end take no room of operators', async () => {
  const store = { batch: async () => undefined, delete: async () => undefined, list: async () => ({ items: [], next: undefined }) }
  const clock = { at: 0 }
  const revocations = new StoredRevocations({ store, now: () => clock.at })
  for (let id = 0; id < 100_000; id++) await revocations.revoke({ kind: 'token', id: String(id), expiresAt: 1000 })
  await expect(revocations.revoke({ kind: 'token', id: 'more', expiresAt: 1000 })).rejects.toMatchObject({ code: 'overloaded' })
  await revocations.revoke({ kind: 'principal', id: 'alice' })
  expect(revocations.find(alice)).toBe('principal')
  clock.at += 2 * DAY_MS
  await revocations.revoke({ kind: 'token', id: 'more', expiresAt: clock.at + 1000 })
  expect(revocations.list()).toHaveLength(2)
})
