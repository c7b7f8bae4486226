import { createLocalJWKSet, jwtVerify, type JSONWebKeySet } from 'jose'
import { describe, expect, test } from 'vitest'
import { signJwt } from '../../src/auth/mint.ts'
import { storedSigner, type SignerOptions } from '../../src/auth/signer.ts'
import type { Purpose, Signer } from '../../src/core/ports/keys.ts'
import type { Store } from '../../src/core/ports/store.ts'
import { aesKeys } from '../../src/stores/file-keys.ts'

const DAY_MS = 24 * 3_600_000
const KEYS = aesKeys(new Uint8Array(32).fill(7))

/** A store, which `again` opens as a new process would. */
export interface Reopened {
  readonly store: Store
  again(): Promise<Reopened>
}

async function isGood(signer: Signer, token: string, purpose: Purpose = 'tokens'): Promise<boolean> {
  const jwks = (await signer.publicJwks(purpose)) as unknown as JSONWebKeySet
  return jwtVerify(token, createLocalJWKSet(jwks)).then(
    () => true,
    () => false,
  )
}

const sign = (signer: Signer, purpose: Purpose = 'tokens') => signJwt(signer, { purpose, typ: 'test', claims: { n: 1 } })

/** Everything that the store holds of the keys, as text. */
async function stored(store: Store): Promise<string> {
  let text = ''
  for await (const { key } of store.scan()) text += JSON.stringify((await store.get(key))?.value)
  return text
}

/** What a signer does with the keys that it keeps in any store. */
export function signerContract(name: string, open: () => Promise<Reopened>): void {
  const made = async (options: Partial<SignerOptions> = {}) => {
    const reopened = await open()
    const clock = { at: Date.parse('2026-01-01') }
    const signerOn = (store: Store, more: Partial<SignerOptions> = {}) =>
      storedSigner({ store, keys: KEYS, now: () => clock.at, algorithms: { tokens: 'EdDSA', responses: 'EdDSA' }, ...options, ...more })
    return { ...reopened, clock, signerOn, signer: signerOn(reopened.store) }
  }

  describe(`signer: ${name}`, () => {
    test.each(['RS256', 'EdDSA', 'ES256'] as const)('signs with %s what jose verifies from the public keys', async (alg) => {
      const { signer } = await made({ algorithms: { tokens: alg } })
      const token = await sign(signer)
      expect(await isGood(signer, token)).toBe(true)
      expect((await signer.key('tokens')).alg).toBe(alg)
    })

    test('makes one key of a purpose, however many ask at once', async () => {
      const { signer } = await made()
      const keys = await Promise.all(Array.from({ length: 20 }, () => signer.key('tokens')))
      expect(new Set(keys.map(({ kid }) => kid)).size).toBe(1)
    })

    test('keeps keys of different purposes apart', async () => {
      const { signer } = await made()
      const token = await sign(signer, 'responses')
      await signer.key('tokens')
      expect(await isGood(signer, token, 'responses')).toBe(true)
      expect(await isGood(signer, token, 'tokens')).toBe(false)
      expect((await signer.publicJwks()).keys).toHaveLength(4)
    })

    test('publishes no private half, and stores it sealed', async () => {
      const { signer, store } = await made({ algorithms: { tokens: 'RS256', responses: 'EdDSA' } })
      await signer.key('tokens')
      await signer.key('responses')
      const members = (await signer.publicJwks()).keys.flatMap((jwk) => Object.keys(jwk))
      expect(new Set(members)).toEqual(new Set(['kty', 'n', 'e', 'crv', 'x', 'kid', 'alg', 'use']))
      const text = await stored(store)
      expect(text).toContain('"sealed":"uamp-sealed-1:')
      expect(text).not.toMatch(/"(?:d|p|q|dp|dq|qi)":/)
    })

    test('keys survive a restart, and what was signed before stays good', async () => {
      const before = await made()
      const token = await sign(before.signer)
      const { kid } = await before.signer.key('tokens')
      const { store } = await before.again()
      const signer = before.signerOn(store)
      expect((await signer.key('tokens')).kid).toBe(kid)
      expect(await isGood(signer, token)).toBe(true)
    })

    test('the key that signs next is public before it signs', async () => {
      const { signer } = await made()
      await signer.key('tokens')
      for (let round = 0; round < 3; round++) {
        const known = (await signer.publicJwks('tokens')).keys.map(({ kid }) => kid)
        expect(known).toContain((await signer.rotate('tokens')).kid)
      }
    })

    test('a rotated key stays public and loses its private half', async () => {
      const { signer, store, again, signerOn } = await made()
      const token = await sign(signer)
      const { kid: old } = await signer.key('tokens')
      const { kid } = await signer.rotate('tokens')
      expect(kid).not.toBe(old)
      expect(await isGood(signer, token)).toBe(true)
      expect((await stored(store)).match(/"sealed"/g)).toHaveLength(2)
      const next = signerOn((await again()).store)
      expect((await next.key('tokens')).kid).toBe(kid)
      expect((await next.list()).map(({ state }) => state)).toEqual(['signs', 'next', 'retired'])
      expect(await isGood(next, token)).toBe(true)
    })

    test('rotation under use: whatever is signed meanwhile is good, also for those who fetched the keys before', async () => {
      const { signer } = await made()
      await signer.key('tokens')
      for (let round = 0; round < 5; round++) {
        const cached = createLocalJWKSet((await signer.publicJwks('tokens')) as unknown as JSONWebKeySet)
        const [, ...tokens] = await Promise.all([signer.rotate('tokens'), ...Array.from({ length: 20 }, () => sign(signer))])
        for (const token of [...tokens, await sign(signer)]) await jwtVerify(token as string, cached)
      }
      expect((await signer.publicJwks('tokens')).keys).toHaveLength(7)
    })

    test('two processes that begin at once use the same keys', async () => {
      const { store, signerOn } = await made()
      const [one, other] = [signerOn(store), signerOn(store)]
      const tokens = await Promise.all([sign(one), sign(other)])
      const fresh = signerOn(store)
      for (const token of tokens) for (const signer of [one, other, fresh]) expect(await isGood(signer, token)).toBe(true)
    })

    test('a key is replaced after 90 days, and its public half goes when nothing that it signed can be valid', async () => {
      const { signer, clock } = await made()
      const token = await sign(signer)
      const { kid } = await signer.key('tokens')
      clock.at += 89 * DAY_MS
      expect((await signer.key('tokens')).kid).toBe(kid)
      clock.at += 2 * DAY_MS
      expect((await signer.key('tokens')).kid).not.toBe(kid)
      expect(await isGood(signer, token)).toBe(true)
      clock.at += 2 * DAY_MS
      expect(await isGood(signer, token)).toBe(false)
    })

    test('a clock that steps back loses no key, and one that was years ahead keeps none for years', async () => {
      const { signer, clock } = await made()
      const token = await sign(signer)
      clock.at -= 30 * DAY_MS
      const { kid } = await signer.rotate('tokens')
      expect(await isGood(signer, token)).toBe(true)
      expect((await signer.key('tokens')).kid).toBe(kid)
      clock.at += 3650 * DAY_MS
      const { kid: late } = await signer.key('tokens')
      clock.at -= 3650 * DAY_MS
      expect((await signer.key('tokens')).kid).not.toBe(late)
      expect(await isGood(signer, await sign(signer))).toBe(true)
    })

    test('another algorithm in the config takes effect at once, and the keys before stay public', async () => {
      const { signer, store, signerOn } = await made()
      const token = await sign(signer)
      const changed = signerOn(store, { algorithms: { tokens: 'ES256' } })
      const after = await sign(changed)
      expect((await changed.key('tokens')).alg).toBe('ES256')
      expect(await isGood(changed, token)).toBe(true)
      expect(await isGood(changed, after)).toBe(true)
      expect((await changed.list()).map(({ alg }) => alg)).toEqual(['ES256', 'ES256', 'EdDSA'])
    })

    test('a withdrawn key neither signs nor is public, nor does the one beside it sign', async () => {
      const { signer } = await made()
      const token = await sign(signer)
      const before = (await signer.list()).map(({ kid }) => kid)
      expect(await signer.withdraw(before[0] as string)).toBe(true)
      expect(await isGood(signer, token)).toBe(false)
      expect((await signer.list()).filter(({ kid }) => before.includes(kid))).toEqual([])
      expect(await isGood(signer, await sign(signer))).toBe(true)
      expect(await signer.withdraw('unknown')).toBe(false)
    })

    test('a retired or a next key is withdrawn alone', async () => {
      const { signer } = await made()
      const token = await sign(signer)
      const { kid } = await signer.rotate('tokens')
      const [, next, retired] = await signer.list()
      expect(await signer.withdraw(retired?.kid as string)).toBe(true)
      expect(await isGood(signer, token)).toBe(false)
      expect(await signer.withdraw(next?.kid as string)).toBe(true)
      expect((await signer.list()).map((each) => each.kid)).toEqual([kid, expect.not.stringMatching(next?.kid as string)])
    })

    test('rotation in a loop keeps a bounded number of keys', async () => {
      const { signer } = await made()
      for (let round = 0; round < 300; round++) await signer.rotate('tokens')
      expect((await signer.publicJwks('tokens')).keys).toHaveLength(258)
    })

    test('where a write fails, a key that is old enough to be replaced signs on', async () => {
      const errors: unknown[] = []
      const { signer, store, clock, signerOn } = await made()
      const { kid } = await signer.key('tokens')
      const full = { get: (key: string) => store.get(key), set: () => Promise.reject(new Error('the disk is full')) }
      const on = signerOn(full as unknown as Store, { onError: (error) => errors.push(error) })
      clock.at += 100 * DAY_MS
      expect((await on.key('tokens')).kid).toBe(kid)
      expect((await on.key('tokens')).kid).toBe(kid)
      expect(errors).toHaveLength(1)
      await expect(on.rotate('tokens')).rejects.toThrow('the disk is full')
    })
  })
}
