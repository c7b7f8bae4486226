import { expect, test } from 'vitest'
import { CLIENT, makeSigner, outcome } from '../../test/support/envelopes.ts'
import { verifies } from '../../test/support/verifies.ts'
import { didDocument, importedKey, signingKeys } from './did-document.ts'

type Members = Readonly<Record<string, unknown>>

const ec = await makeSigner('ES256')
const ed = await makeSigner('EdDSA')
const EC = ec.jwk as Members
const ED = ed.jwk as Members

const method = (id: string, more: Members = {}) => ({ id, type: 'JsonWebKey2020', controller: CLIENT, publicKeyJwk: EC, ...more })
const document = (more: Members) => ({ id: CLIENT, ...more })
const ids = async (value: unknown) => (await signingKeys(value, CLIENT)).map(({ id }) => id)
const ONE = `${CLIENT}#1`

test('our own document has these keys, and nothing private', async () => {
  const pair = await crypto.subtle.exportKey('jwk', ec.pair.privateKey)
  const made = didDocument(
    CLIENT,
    [
      { kid: 'a', jwk: { ...pair } },
      { kid: 'b', jwk: { ...ED, kid: 'b', alg: 'EdDSA' } },
    ],
    [{ id: 'uamp', type: 'UAMP', serviceEndpoint: 'https://client.example/v1/messages' }],
  )
  expect(made).toMatchObject({
    id: CLIENT,
    verificationMethod: [
      { id: `${CLIENT}#a`, controller: CLIENT, publicKeyJwk: { kty: 'EC', crv: 'P-256', x: EC['x'], y: EC['y'] } },
      { id: `${CLIENT}#b`, publicKeyJwk: { kty: 'OKP', crv: 'Ed25519', x: ED['x'] } },
    ],
    assertionMethod: [`${CLIENT}#a`, `${CLIENT}#b`],
    authentication: [`${CLIENT}#a`, `${CLIENT}#b`],
    service: [{ id: `${CLIENT}#uamp`, type: 'UAMP' }],
  })
  expect(JSON.stringify(made)).not.toContain(String(pair.d))
  expect(didDocument(CLIENT, [])).not.toHaveProperty('service')
  const keys = await signingKeys(JSON.parse(JSON.stringify(made)), CLIENT)
  expect(keys.map(({ id, alg }) => [id, alg])).toEqual([
    [`${CLIENT}#a`, 'ES256'],
    [`${CLIENT}#b`, 'EdDSA'],
  ])
})

verifies('envelope:document-keys', 'keys that sign in the name of a DID are those that its document lists for it', async () => {
  const listed: readonly (readonly [what: string, document: Members, keys: readonly string[]])[] = [
    ['for assertions', { verificationMethod: [method(ONE)], assertionMethod: [ONE] }, [ONE]],
    ['for authentication', { verificationMethod: [method(ONE)], authentication: [ONE] }, [ONE]],
    ['for key agreement', { verificationMethod: [method(ONE)], keyAgreement: [ONE] }, []],
    ['for capabilities', { verificationMethod: [method(ONE)], capabilityInvocation: [ONE], capabilityDelegation: [ONE] }, []],
    ['for nothing', { verificationMethod: [method(ONE)] }, []],
    ['embedded', { assertionMethod: [method(ONE)] }, [ONE]],
    ['embedded for key agreement', { keyAgreement: [method(ONE)], assertionMethod: [] }, []],
    ['relative', { verificationMethod: [method('#1')], assertionMethod: ['#1'] }, [ONE]],
    ['relative here, whole there', { verificationMethod: [method('#1')], assertionMethod: [ONE] }, [ONE]],
    ['embedded and relative', { authentication: [method('#1')] }, [ONE]],
    ['with another case of the host', { verificationMethod: [method('did:web:CLIENT.example#1')], assertionMethod: [ONE] }, [ONE]],
    ['another fragment', { verificationMethod: [method(`${CLIENT}#2`)], assertionMethod: [ONE] }, []],
    ['a fragment in another case', { verificationMethod: [method(`${CLIENT}#a`)], assertionMethod: [`${CLIENT}#A`] }, []],
    ['listed, but not there', { assertionMethod: [ONE] }, []],
    ['of another DID', { verificationMethod: [method('did:web:evil.example#1')], assertionMethod: ['did:web:evil.example#1'] }, []],
    ['embedded, of another DID', { assertionMethod: [method('did:web:evil.example#1')] }, []],
    ['of an agent below', { assertionMethod: [method(`${CLIENT}:bob#1`)] }, []],
    ['controlled by another', { assertionMethod: [method(ONE, { controller: 'did:web:evil.example' })] }, []],
    ['controlled by nobody', { assertionMethod: [method(ONE, { controller: undefined })] }, [ONE]],
    ['controlled by no text', { assertionMethod: [method(ONE, { controller: [CLIENT] })] }, []],
    ['without an id', { assertionMethod: [method(ONE, { id: undefined }), method(ONE, { id: 1 })] }, []],
    ['no array', { verificationMethod: method(ONE), assertionMethod: ONE }, []],
    ['of other kinds', { verificationMethod: [null, 1, 'x', [method(ONE)], method(ONE)], assertionMethod: [null, 1, {}, ONE] }, [ONE]],
    ['nothing', {}, []],
  ]
  for (const [what, more, keys] of listed) expect([what, await ids(document(more))]).toEqual([what, keys])
})

test('a document of another DID, or none', async () => {
  const others = [null, undefined, 1, 'x', [], {}, { id: 1 }, { id: 'did:web:evil.example' }, { id: `${CLIENT}:bob` }, { id: [CLIENT] }]
  for (const value of others) expect([value, await outcome(() => signingKeys(value, CLIENT))]).toEqual([value, '4.01 did'])
  expect(await outcome(() => signingKeys({ id: 'did:web:CLIENT.example' }, CLIENT))).toBe('accepted')
})

test('of two methods with one id the first counts', async () => {
  const two = document({ verificationMethod: [method(ONE), method('#1', { publicKeyJwk: ED })], assertionMethod: [ONE] })
  expect((await signingKeys(two, CLIENT)).map(({ alg }) => alg)).toEqual(['ES256'])
})

test.each<[string, unknown]>([
  ['nothing', undefined],
  ['a text', 'eyJ'],
  ['an array', [EC]],
  ['no members', {}],
  ['a private member', { ...EC, d: 'AAAA' }],
  ['a private member that is null', { ...EC, d: null }],
  ['another curve', { ...EC, crv: 'P-384' }],
  ['the curve of coins', { ...EC, crv: 'secp256k1' }],
  ['a curve in another case', { ...EC, crv: 'p-256' }],
  ['the curve of another kind', { ...EC, kty: 'OKP' }],
  ['Ed448', { ...ED, crv: 'Ed448' }],
  ['X25519', { ...ED, crv: 'X25519' }],
  ['RSA', { kty: 'RSA', n: 'AQAB', e: 'AQAB' }],
  ['a shared secret', { kty: 'oct', k: 'AAAA' }],
  ['a prototype for a curve', { kty: 'EC', crv: '__proto__', x: '', y: '' }],
  ['no y', { ...EC, y: undefined }],
  ['no x', { ...EC, x: undefined }],
  ['a y too many', { ...ED, y: 'AAAA' }],
  ['x and y the other way round', { ...EC, x: EC['y'], y: EC['x'] }],
  ['a point that is not on the curve', { ...EC, y: EC['x'] }],
  ['the point at infinity', { ...EC, x: 'A'.repeat(43), y: 'A'.repeat(43) }],
  ['an x that is too short', { ...EC, x: 'AA' }],
  ['an x that is too long', { ...ED, x: `${String(ED['x'])}AA` }],
  ['an x that is no text', { ...ED, x: 1 }],
  ['an x that is not base64url', { ...EC, x: '!'.repeat(43) }],
])('is no key that signs: %s', async (_, jwk) => {
  expect(await importedKey(ONE, jwk)).toBeUndefined()
  expect(await ids(document({ assertionMethod: [method(ONE, { publicKeyJwk: jwk })] }))).toEqual([])
})

/** y of each point of small order, as RFC 8032 writes it; some are not the shortest form of theirs. */
const SMALL_ORDER = [
  '00'.repeat(32),
  `01${'00'.repeat(31)}`,
  '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05',
  'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a',
  `ec${'ff'.repeat(30)}7f`,
  `ed${'ff'.repeat(30)}7f`,
  `ee${'ff'.repeat(30)}7f`,
]

test('a key of small order, whose signature fits every message, is none', async () => {
  for (const hex of SMALL_ORDER) {
    const bytes = Buffer.from(hex, 'hex')
    for (const sign of [0, 128]) {
      const x = Buffer.from(bytes.map((byte, at) => (at === 31 ? byte | sign : byte)))
      for (const written of [x.toString('base64url'), x.toString('base64')]) {
        expect([written, await importedKey(ONE, { kty: 'OKP', crv: 'Ed25519', x: written })]).toEqual([written, undefined])
      }
    }
  }
})

test('other members of a key do not count', async () => {
  for (const jwk of [EC, ED]) {
    const more = { ...jwk, use: 'sig', key_ops: [], ext: false, alg: 'none', kid: 'x', x5u: 'https://evil.example' }
    expect(await importedKey(ONE, more)).toMatchObject({ id: ONE })
  }
})

test('keys that cannot sign do not push out those that can', async () => {
  const rsa = (_: unknown, at: number) => method(`#rsa${at}`, { publicKeyJwk: { kty: 'RSA', n: 'AQAB', e: 'AQAB' } })
  const methods = [...Array.from({ length: 20 }, rsa), method('#1')]
  expect(await ids(document({ assertionMethod: methods }))).toEqual([ONE])
})

test('of a thousand keys the first are looked at', async () => {
  const methods = Array.from({ length: 1000 }, (_, at) => method(`#${at}`))
  const first = methods.slice(0, 64).map(({ id }) => CLIENT + id)
  expect(await ids(document({ verificationMethod: methods, assertionMethod: methods.map(({ id }) => id) }))).toEqual(first)
  expect(await ids(document({ assertionMethod: methods }))).toEqual(first)
})

test('a document of many megabytes costs no more than its first keys', async () => {
  const huge = 'k'.repeat(5_000_000)
  const many = Array.from({ length: 200_000 }, () => huge)
  expect(await ids(document({ assertionMethod: [...many, ONE], verificationMethod: [method(ONE)] }))).toEqual([])
  expect(await ids(document({ assertionMethod: [method(`#${huge}`, { publicKeyJwk: { ...EC, x: huge } }), method('#1')] }))).toEqual([ONE])
})
