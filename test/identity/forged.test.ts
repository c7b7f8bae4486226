import { createHmac } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { RequirementId } from '../../spec/requirements.ts'
import { signJwt } from '../../src/auth/mint.ts'
import { verifies } from '../support/verifies.ts'
import { claimsFor, identityServer, issuer, keyPair, now, WAYS, type Pair } from './support.ts'

const encoded = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')
/** A token with any header and any signature. */
const raw = (header: object, claims: object, signature = ''): string => `${encoded(header)}.${encoded(claims)}.${signature}`
const hmac = (header: object, claims: object, key: string): string => {
  const text = `${encoded(header)}.${encoded(claims)}`
  return `${text}.${createHmac('sha256', key).update(text).digest('base64url')}`
}

/** Servers and keys for all cases. The issuers live as long as the file, so they are not of `onTestFinished`. */
interface World {
  readonly url: string
  readonly from: string
  readonly pair: Pair
  readonly mallory: Pair
  readonly twin: Pair
  readonly server: Awaited<ReturnType<typeof identityServer>>
}

type Forge = (world: World) => Promise<string> | string
type Row = { readonly name: string; readonly because: string; readonly verifies: RequirementId; readonly forge: Forge }

const good = ({ url, from }: World, more: object = {}) => claimsFor(url, from, more)
const signed =
  (claims: object = {}, header: Record<string, unknown> = {}): Forge =>
  (world) =>
    world.pair.sign(good(world, claims), header)
const byMallory =
  (header: (world: World) => Record<string, unknown>): Forge =>
  (world) =>
    world.mallory.sign(good(world), header(world))

const UNREADABLE = 'The token is not a JWT that can be read'
const ALGORITHM = 'The token is signed with an algorithm that is not accepted'
const UNKNOWN_KEY = 'The token is signed with a key that its issuer does not publish'
const OTHER_SERVER = 'The token is for another server'
const SIGNATURE = 'The signature of the token is wrong'
const UNTRUSTED = 'This server does not believe the issuer of the token'

const rows: readonly Row[] = [
  { name: 'alg none', because: UNREADABLE, verifies: 'verify.alg', forge: (w) => raw({ alg: 'none', typ: 'at+jwt', kid: 'k1' }, good(w)) },
  {
    name: 'alg none with a signature',
    because: ALGORITHM,
    verifies: 'verify.alg',
    forge: (w) => raw({ alg: 'none', typ: 'at+jwt', kid: 'k1' }, good(w), 'AAAA'),
  },
  {
    name: 'alg None',
    because: ALGORITHM,
    verifies: 'verify.alg',
    forge: (w) => raw({ alg: 'None', typ: 'at+jwt', kid: 'k1' }, good(w), 'AAAA'),
  },
  {
    name: 'HS256 with the public key',
    because: ALGORITHM,
    verifies: 'verify.alg',
    forge: (w) => hmac({ alg: 'HS256', typ: 'at+jwt', kid: 'k1' }, good(w), JSON.stringify(w.pair.jwk)),
  },
  {
    name: 'HS256 with the modulus',
    because: ALGORITHM,
    verifies: 'verify.alg',
    forge: (w) => hmac({ alg: 'HS256', typ: 'at+jwt', kid: 'k1' }, good(w), w.pair.jwk.n ?? ''),
  },
  {
    name: 'another algorithm than its key is for',
    because: 'The key of the token is not for its algorithm',
    verifies: 'verify.alg',
    forge: (w) => raw({ alg: 'ES256', typ: 'at+jwt', kid: 'k1' }, good(w), 'AAAA'),
  },
  {
    name: 'jwk in the header',
    because: UNKNOWN_KEY,
    verifies: 'verify.own-key',
    forge: byMallory((w) => ({ kid: 'm1', jwk: w.mallory.jwk })),
  },
  {
    name: 'jwk in the header under a known kid',
    because: SIGNATURE,
    verifies: 'verify.own-key',
    forge: byMallory((w) => ({ kid: 'k1', jwk: w.mallory.jwk })),
  },
  {
    name: 'jku in the header',
    because: UNKNOWN_KEY,
    verifies: 'verify.own-key',
    forge: byMallory((w) => ({ kid: 'm1', jku: `${w.from}/mallory.json` })),
  },
  {
    name: 'x5u in the header',
    because: UNKNOWN_KEY,
    verifies: 'verify.own-key',
    forge: byMallory((w) => ({ kid: 'm1', x5u: `${w.from}/mallory.pem` })),
  },
  { name: 'x5c in the header', because: UNKNOWN_KEY, verifies: 'verify.own-key', forge: byMallory(() => ({ kid: 'm1', x5c: ['MIIB'] })) },
  {
    name: 'crit in the header',
    because: 'The token has a header that is not understood',
    verifies: 'verify.own-key',
    forge: (w) => raw({ alg: 'RS256', typ: 'at+jwt', kid: 'k1', crit: ['exp'] }, good(w), 'AAAA'),
  },
  {
    name: 'b64 in the header',
    because: 'The token has a header that is not understood',
    verifies: 'verify.own-key',
    forge: (w) => raw({ alg: 'RS256', typ: 'at+jwt', kid: 'k1', b64: false }, good(w), 'AAAA'),
  },
  { name: 'a kid with a path', because: UNKNOWN_KEY, verifies: 'verify.kid', forge: byMallory(() => ({ kid: '../../../../etc/passwd' })) },
  { name: 'a kid with SQL', because: UNKNOWN_KEY, verifies: 'verify.kid', forge: byMallory(() => ({ kid: "' OR 1=1 --" })) },
  { name: 'the kid __proto__', because: UNKNOWN_KEY, verifies: 'verify.kid', forge: byMallory(() => ({ kid: '__proto__' })) },
  {
    name: 'a kid that is no text',
    because: UNREADABLE,
    verifies: 'verify.kid',
    forge: (w) => raw({ alg: 'RS256', typ: 'at+jwt', kid: ['k1'] }, good(w), 'AAAA'),
  },
  {
    name: 'a kid of two keys',
    because: 'The issuer of the token publishes several keys that could have signed it',
    verifies: 'keys.duplicate',
    forge: (w) => w.twin.sign(good(w)),
  },
  { name: "another's key under a known kid", because: SIGNATURE, verifies: 'verify.kid', forge: byMallory(() => ({ kid: 'k1' })) },
  {
    name: 'typ JWT',
    because: 'The token is of the type "jwt", and must be "at+jwt"',
    verifies: 'verify.typ',
    forge: signed({}, { typ: 'JWT' }),
  },
  {
    name: 'typ dpop+jwt',
    because: 'The token is of the type "dpop+jwt", and must be "at+jwt"',
    verifies: 'verify.typ',
    forge: signed({}, { typ: 'dpop+jwt' }),
  },
  {
    name: 'no typ',
    because: 'The token is of the type "", and must be "at+jwt"',
    verifies: 'verify.typ',
    forge: signed({}, { typ: undefined }),
  },
  { name: 'an ID token', because: 'This is not an access token', verifies: 'verify.typ', forge: signed({ nonce: 'n', at_hash: 'x' }) },
  {
    name: 'a logout token',
    because: 'This is not an access token',
    verifies: 'verify.typ',
    forge: signed({ events: { 'http://schemas.openid.net/event/backchannel-logout': {} } }),
  },
  { name: 'other aud', because: OTHER_SERVER, verifies: 'verify.aud', forge: signed({ aud: 'https://other.example' }) },
  { name: 'no aud', because: OTHER_SERVER, verifies: 'verify.aud', forge: signed({ aud: undefined }) },
  {
    name: 'an aud that begins as ours',
    because: OTHER_SERVER,
    verifies: 'verify.aud',
    forge: (w) => w.pair.sign(good(w, { aud: `${w.url}.evil.example` })),
  },
  {
    name: 'an aud below an agent of ours',
    because: OTHER_SERVER,
    verifies: 'verify.aud',
    forge: (w) => w.pair.sign(good(w, { aud: `${w.url}/agents/demo/x` })),
  },
  { name: 'expired', because: 'The token has expired', verifies: 'verify.time', forge: signed({ iat: now() - 600, exp: now() - 120 }) },
  { name: 'not valid yet', because: 'The token is not valid yet', verifies: 'verify.time', forge: signed({ nbf: now() + 300 }) },
  {
    name: 'issued in the future',
    because: 'The token was issued in the future',
    verifies: 'verify.time',
    forge: signed({ iat: now() + 300, exp: now() + 600 }),
  },
  { name: 'without an end', because: 'The token does not say when it ends', verifies: 'verify.time', forge: signed({ exp: undefined }) },
  {
    name: 'with an end that is a text',
    because: 'The token does not say when it ends',
    verifies: 'verify.time',
    forge: (w) => w.pair.sign({ ...good(w), exp: '9999999999' as never }),
  },
  {
    name: 'with an end that no clock has',
    because: 'The token does not say when it ends',
    verifies: 'verify.time',
    forge: signed({ exp: 1e300 }),
  },
  {
    name: 'valid for a day',
    because: 'The token is valid for longer than an hour',
    verifies: 'verify.time',
    forge: signed({ exp: now() + 86_400 }),
  },
  { name: 'without an id', because: 'The token has no id', verifies: 'verify.claims', forge: signed({ jti: undefined }) },
  { name: 'without an owner', because: 'The token does not say whose it is', verifies: 'verify.claims', forge: signed({ sub: undefined }) },
  { name: 'with an empty owner', because: 'The token does not say whose it is', verifies: 'verify.claims', forge: signed({ sub: '' }) },
  {
    name: 'without an issuer',
    because: 'The token does not name its issuer',
    verifies: 'verify.claims',
    forge: signed({ iss: undefined }),
  },
  {
    name: 'with actors that cannot be read',
    because: 'The token does not say who acts for its owner',
    verifies: 'verify.claims',
    forge: signed({ act: { no: 'sub' } }),
  },
  {
    name: 'of an issuer that nobody allows',
    because: UNTRUSTED,
    verifies: 'trust.order',
    forge: signed({ iss: 'https://mallory.example' }),
  },
  {
    name: 'of an issuer with our name in front',
    because: UNTRUSTED,
    verifies: 'trust.order',
    forge: (w) => w.pair.sign(good(w, { iss: `${w.url}.evil.example` })),
  },
  {
    name: 'of this server, by a key of another',
    because: UNKNOWN_KEY,
    verifies: 'verify.kid',
    forge: (w) => w.pair.sign(good(w, { iss: w.url })),
  },
  {
    name: 'of an agent here, by a key of another',
    because: UNKNOWN_KEY,
    verifies: 'verify.kid',
    forge: (w) => w.pair.sign(good(w, { iss: `${w.url}/agents/demo` })),
  },
  {
    name: 'signed by this server for another purpose',
    because: UNKNOWN_KEY,
    verifies: 'verify.purpose',
    forge: (w) => signJwt(w.server.signer, { purpose: 'responses', typ: 'at+jwt', claims: good(w, { iss: w.url }) }),
  },
  {
    name: 'of this server for another server',
    because: OTHER_SERVER,
    verifies: 'verify.aud',
    forge: (w) => w.server.mint({ audience: 'https://other.example' }),
  },
  {
    name: 'of this server with a changed scope',
    because: SIGNATURE,
    verifies: 'verify.form',
    forge: async (w) => {
      const [head = '', , signature = ''] = (await w.server.mint()).split('.')
      return `${head}.${encoded(good(w, { iss: w.url, scope: 'admin' }))}.${signature}`
    },
  },
  { name: 'with padding', because: UNREADABLE, verifies: 'verify.form', forge: async (w) => `${await w.pair.sign(good(w))}=` },
  {
    name: 'with other letters for the same signature',
    because: UNREADABLE,
    verifies: 'verify.form',
    forge: async (w) => {
      const token = await w.pair.sign(good(w))
      // 256 bytes end in a letter whose last four bits nobody reads.
      return token.slice(0, -1) + String.fromCharCode(token.charCodeAt(token.length - 1) + 1)
    },
  },
  {
    name: 'with a fourth part',
    because: UNREADABLE,
    verifies: 'verify.form',
    forge: async (w) => `${await w.pair.sign(good(w))}.AAAA`,
  },
  {
    name: 'without a signature',
    because: UNREADABLE,
    verifies: 'verify.form',
    forge: async (w) => (await w.pair.sign(good(w))).split('.').slice(0, 2).join('.') + '.',
  },
  {
    name: 'that is too long',
    because: 'The token has more than 8192 characters',
    verifies: 'verify.form',
    forge: (w) => w.pair.sign(good(w, { fill: 'x'.repeat(7000) })),
  },
  {
    name: 'whose claims are a list',
    because: UNREADABLE,
    verifies: 'verify.form',
    forge: () => `${encoded({ alg: 'RS256', typ: 'at+jwt' })}.${encoded([])}.AAAA`,
  },
  {
    name: 'whose claims are no JSON',
    because: UNREADABLE,
    verifies: 'verify.form',
    forge: () => `${encoded({ alg: 'RS256', typ: 'at+jwt' })}.AAAA.AAAA`,
  },
]

describe('of forged tokens none is accepted', () => {
  let world: World
  const ends: (() => Promise<void> | void)[] = []

  beforeAll(async () => {
    const [pair, mallory, twin, other] = await Promise.all([keyPair('k1'), keyPair('m1'), keyPair('twin'), keyPair('twin')])
    const from = await issuer.kept([pair, twin, other], ends)
    const options = {
      tokens: { alice: 'wonderland-4f1c0a' },
      access: { agents: { allow: [from.url] } },
      outbound: { allow: [from.host] },
      limits: { wrongTokenBurst: 10_000, requestBurst: 10_000 },
    }
    const server = await identityServer.kept(options, ends)
    world = { url: server.url, from: from.url, pair, mallory, twin, server }
  })
  afterAll(async () => {
    for (const end of ends.toReversed()) await end()
  })

  test('while a good one is, each way', async () => {
    const token = await world.pair.sign(good(world))
    for (const way of Object.values(WAYS)) expect(await way(world.url, token)).toMatchObject({ accepted: true })
  })

  for (const { name, because, forge, verifies: id } of rows) {
    test.each(Object.entries(WAYS))(`${name} [${id}], by %s`, async (_, way) => {
      const token = await forge(world)
      const { accepted, status, error, challenge } = await way(world.url, token)
      expect(accepted).toBe(false)
      expect(error.message).toContain(because)
      if (status !== undefined) {
        expect(status).toBe(401)
        expect(challenge).toMatch(/^Bearer( error="invalid_token", error_description="[^"]+")?$/)
      } else {
        expect(error).toMatchObject({ code: 'unauthorized' })
      }
      const told = JSON.stringify([error, challenge])
      for (const part of token.split('.').filter((each) => each.length > 8)) expect(told).not.toContain(part)
    })
  }

  verifies('verify.challenge', 'the log has none of the tokens', async () => {
    const token = await world.pair.sign(good(world, { aud: 'https://other.example' }))
    expect(await WAYS.header(world.url, token)).toMatchObject({ accepted: false, challenge: expect.stringContaining('for another server') })
    const log = JSON.stringify(world.server.logged)
    expect(log).not.toContain(token.split('.')[1])
    expect(log).toContain('A token was refused')
  })
})
