import { createHmac, createPublicKey, generateKeyPairSync, KeyObject, sign as signWith } from 'node:crypto'
import { expect, test } from 'vitest'
import { CLIENT, makeSigner, outcome, QUESTION, type Signer } from '../../test/support/envelopes.ts'
import { verifies } from '../../test/support/verifies.ts'
import { hashOf, payloadOf, signedText } from './canonical.ts'
import { readEnvelope } from './message.ts'
import { readSignature, signEnvelope, verifySignature, type VerifyKey } from './signature.ts'
import type { Unsigned } from './schema.ts'

type Bytes = Uint8Array

const ec = await makeSigner('ES256')
const ed = await makeSigner('EdDSA')
const KEYS = [ec.key, ed.key]
const HASH = await hashOf(QUESTION)
const REFUSED = '4.01 signature'

const url = (bytes: Bytes | string) => Buffer.from(bytes as string).toString('base64url')
const spki = (alg: Signer) =>
  createPublicKey({ key: alg.jwk as Record<string, string>, format: 'jwk' }).export({ type: 'spki', format: 'pem' })

/** A signature with a header, and perhaps a payload, of one's own. */
async function jws(header: unknown, sign: (input: Bytes) => Bytes | Promise<Bytes>, payload?: string): Promise<string> {
  const head = url(typeof header === 'string' ? header : JSON.stringify(header))
  const signed = await sign(Buffer.from(`${head}.${url(payload ?? payloadOf(HASH))}`))
  return `${head}.${payload === undefined ? '' : url(payload)}.${url(signed)}`
}
const by = (header: unknown, { signing }: Signer = ec, payload?: string) => jws(header, (input) => signing.sign(input), payload)

async function verified(sig: string, keys: readonly VerifyKey[] = KEYS, members: object = QUESTION): Promise<string> {
  return outcome(() => verifySignature(members as Record<string, unknown>, readSignature(sig), keys))
}

const EC = { alg: 'ES256', kid: ec.key.id, typ: 'uamp+jws' }
const ED = { alg: 'EdDSA', kid: ed.key.id, typ: 'uamp+jws' }

verifies('envelope:hash-form', 'what is signed is the hash, byte for byte', async () => {
  const sig = (await signEnvelope(QUESTION, ed.signing)).sig
  const [head = '', body, tail = ''] = sig.split('.')
  expect(body).toBe('')
  expect(HASH).toMatch(/^[0-9a-f]{64}$/)
  const input = Buffer.from(`${head}.${url(`{"sha256":"${HASH}"}`)}`)
  expect(await crypto.subtle.verify('Ed25519', ed.key.key, Buffer.from(tail, 'base64url'), input)).toBe(true)
  // The same hash in another form was signed, but is not what a detached signature is of.
  for (const payload of [`{"sha256":"${HASH.toUpperCase()}"}`, `{"sha256":"sha256:${HASH}"}`, `{"sha256": "${HASH}"}`, HASH]) {
    const other = await by(ED, ed, payload)
    expect(await verified(other.replace(/\..*\./, '..'))).toBe(REFUSED)
  }
})

verifies('envelope:detached', 'a detached signature fits the hash that we compute', async () => {
  for (const { signing } of [ec, ed]) {
    const { sig, ...members } = await signEnvelope(QUESTION, signing)
    expect(members).toEqual(QUESTION)
    expect(sig).toMatch(/^[\w-]+\.\.[\w-]+$/)
    expect(await verified(sig)).toBe('accepted')
    expect(await verified(sig, KEYS, { ...QUESTION, intent: 'inform' })).toBe(REFUSED)
  }
})

verifies('envelope:context-hash', 'a context names a message by the hash that its signature is of', async () => {
  const envelope = await signEnvelope(QUESTION, ec.signing)
  const { members } = readEnvelope(JSON.stringify(envelope))
  const { hash } = await verifySignature(members, readSignature(envelope.sig), KEYS)
  expect([await hashOf(members), await hashOf(QUESTION)]).toEqual([hash, hash])
  const answer = { ...QUESTION, context: [{ id: envelope.id, hash: `sha256:${hash}` }] }
  expect(await outcome(() => readEnvelope(JSON.stringify({ ...answer, sig: 'x' })))).toBe('accepted')
  // Signed anew, or by another, it is the same message.
  expect(await hashOf(await signEnvelope(QUESTION, ed.signing))).toBe(hash)
  expect(await hashOf({ ...members, body: { type: 'text/plain', content: '' } })).not.toBe(hash)
})

verifies('envelope:attached', 'a payload that comes along says the same hash', async () => {
  expect(await verified(await by(EC, ec, payloadOf(HASH)))).toBe('accepted')
  expect(await verified(await by(EC, ec, `{ "iat": 1, "sha256": "${HASH}" }`))).toBe('accepted')
  const others = [
    payloadOf('0'.repeat(64)),
    payloadOf(HASH.toUpperCase()),
    payloadOf(`sha256:${HASH}`),
    `{"sha256":["${HASH}"]}`,
    `{"hash":"${HASH}"}`,
    `{"sha256":"${HASH}","sha256":"${HASH}"}`,
    `{"sha256":"${'0'.repeat(64)}","sha256":"${HASH}"}`,
    `{"sha256":"${'0'.repeat(64)}","sha\\u003256":"${HASH}"}`,
    `{"__proto__":{"sha256":"${HASH}"}}`,
    `\ufeff${payloadOf(HASH)}`,
    `"${HASH}"`,
    `[${payloadOf(HASH)}]`,
    'null',
    HASH,
    '{',
  ]
  for (const payload of others) expect([payload, await verified(await by(EC, ec, payload))]).toEqual([payload, REFUSED])
  // Somebody takes the payload of another message, whose hash fits, and leaves the signature.
  const [head, , tail] = (await by(EC, ec, payloadOf('0'.repeat(64)))).split('.')
  expect(await verified(`${head}.${url(payloadOf(HASH))}.${tail}`)).toBe(REFUSED)
})

const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
const p384 = generateKeyPairSync('ec', { namedCurve: 'P-384' })
const ecPrivate = KeyObject.from(ec.pair.privateKey)
const p256Der = (input: Bytes) => signWith('sha256', input, { key: ecPrivate, dsaEncoding: 'der' })
const hmac = (secret: string | Bytes) => (input: Bytes) => createHmac('sha256', secret).update(input).digest()

verifies('envelope:algorithms', 'ES256 and EdDSA, and no other algorithm', async () => {
  expect(await verified(await by(EC))).toBe('accepted')
  expect(await verified(await by(ED, ed))).toBe('accepted')
  // RFC 9864 has this name for it.
  expect(await verified(await by({ ...ED, alg: 'Ed25519' }, ed))).toBe('accepted')
  const tricks: readonly (readonly [what: string, sig: string | Promise<string>])[] = [
    ['none', jws({ ...EC, alg: 'none' }, () => new Uint8Array())],
    ['none, with a letter', jws({ ...EC, alg: 'none' }, () => new Uint8Array([0]))],
    ['None, signed', by({ ...EC, alg: 'None' })],
    ['no algorithm', by({ kid: EC.kid })],
    ['an algorithm that is null', by({ ...EC, alg: null })],
    ['an algorithm in a list', by({ ...EC, alg: ['ES256'] })],
    ['es256', by({ ...EC, alg: 'es256' })],
    ['ES256 with white space', by({ ...EC, alg: 'ES256 ' })],
    ['HS256 with the public key as PEM', jws({ ...EC, alg: 'HS256' }, hmac(spki(ec) as string))],
    ['HS256 with the public key as x', jws({ ...EC, alg: 'HS256' }, hmac(Buffer.from(String(ec.jwk.x), 'base64url')))],
    ['HS256 with the public key as x, called ES256', jws(EC, hmac(Buffer.from(String(ec.jwk.x), 'base64url')))],
    ['RS256', jws({ ...EC, alg: 'RS256' }, (input) => signWith('sha256', input, rsa.privateKey))],
    ['RS256, called ES256', jws(EC, (input) => signWith('sha256', input, rsa.privateKey))],
    ['PS256', jws({ ...EC, alg: 'PS256' }, (input) => signWith('sha256', input, rsa.privateKey))],
    ['ES384', jws({ ...EC, alg: 'ES384' }, (input) => signWith('sha384', input, { key: p384.privateKey, dsaEncoding: 'ieee-p1363' }))],
    ['ES384, called ES256', jws(EC, (input) => signWith('sha384', input, { key: p384.privateKey, dsaEncoding: 'ieee-p1363' }))],
    ['ES256K', by({ ...EC, alg: 'ES256K' })],
    ['Ed448', by({ ...ED, alg: 'Ed448' }, ed)],
    ['ES256 with a key of Ed25519', by({ ...EC, kid: ed.key.id }, ec)],
    ['ES256 by a key of Ed25519', by({ ...EC, kid: ed.key.id }, ed)],
    ['EdDSA by a key of P-256', by({ ...ED, kid: ec.key.id }, ec)],
    ['EdDSA, called ES256', by(EC, ed)],
    ['DER instead of r and s', jws(EC, p256Der)],
    ['nothing', jws(EC, () => new Uint8Array())],
    ['r and s that are 0', jws(EC, () => new Uint8Array(64))],
    ['r and s that are 1', jws(EC, () => new Uint8Array(64).map((_, at) => (at % 32 === 31 ? 1 : 0)))],
    ['r and s that are too large', jws(EC, () => new Uint8Array(64).fill(255))],
    ['zeros of Ed25519', jws(ED, () => new Uint8Array(64))],
    ['a byte too many', jws(EC, async (input) => Buffer.concat([await ec.signing.sign(input), new Uint8Array(1)]))],
    ['a byte too few', jws(EC, async (input) => (await ec.signing.sign(input)).subarray(0, 63))],
    ['a byte too many of Ed25519', jws(ED, async (input) => Buffer.concat([await ed.signing.sign(input), new Uint8Array(1)]))],
    ['half of it', jws(EC, async (input) => (await ec.signing.sign(input)).subarray(0, 32))],
    ['twice', jws(ED, async (input) => Buffer.concat([await ed.signing.sign(input), await ed.signing.sign(input)]))],
  ]
  for (const [what, sig] of tricks) expect([what, await verified(await sig)]).toEqual([what, REFUSED])
})

verifies('envelope:header', 'a header has alg, kid and typ, and nothing that changes what is verified', async () => {
  const other = await makeSigner('ES256')
  for (const more of [
    { jwk: other.jwk },
    { jwk: ec.jwk },
    { jku: 'https://evil.example/keys' },
    { x5u: 'https://evil.example/cert' },
    { x5c: ['MIIB'] },
    { x5t: 'AA' },
    { crit: ['b64'], b64: false },
    { crit: [] },
    { crit: ['alg'] },
    { b64: true },
    { b64: false },
    { cty: 'JWT' },
    { iat: 1 },
    { zip: 'DEF' },
    { sha256: HASH },
    { Alg: 'none' },
    { '': 1 },
    { typ: 'JWT' },
    { typ: 'manifest+jws' },
    { typ: '' },
    { typ: null },
    { kid: null },
    { kid: 1 },
    { kid: [EC.kid] },
    { kid: `${EC.kid}${'x'.repeat(2048)}` },
  ]) {
    for (const signer of [ec, other]) expect([more, await verified(await by({ ...EC, ...more }, signer))]).toEqual([more, REFUSED])
  }
  const texts = [
    '{"alg":"none","alg":"ES256"}',
    '{"alg":"ES256","kid":"did:web:evil.example#1","kid":"did:web:client.example#ES256"}',
    '{"alg":"ES256","\\u0061lg":"ES256"}',
    '{"alg":"ES256","__proto__":{"kid":"x"}}',
    '\ufeff{"alg":"ES256"}',
    '["ES256"]',
    '"ES256"',
    'null',
    '',
    '{',
    '{"alg":"ES256"}x',
    '{"alg":"\\ud800"}',
    '['.repeat(5000),
  ]
  for (const text of texts) expect([text, await verified(await by(text))]).toEqual([text, REFUSED])
  // typ and kid may be left out, and white space may be there.
  for (const header of [{ alg: 'ES256' }, { ...EC, typ: 'application/UAMP+jws' }, ' {"alg" : "ES256"}\n']) {
    expect([header, await verified(await by(header))]).toEqual([header, 'accepted'])
  }
})

verifies('envelope:sender-key', 'the key is one of the sender, and the one that kid names', async () => {
  const evil = await makeSigner('ES256', 'did:web:evil.example#1')
  const kids: readonly (readonly [kid: string, expected: string])[] = [
    [EC.kid, 'accepted'],
    ['did:web:CLIENT.Example#ES256', 'accepted'],
    ['#ES256', REFUSED],
    ['ES256', REFUSED],
    ['', REFUSED],
    [CLIENT, REFUSED],
    [`${CLIENT}#`, REFUSED],
    [`${CLIENT}#es256`, REFUSED],
    [`${CLIENT}#ES256#`, REFUSED],
    [`${CLIENT}#EdDSA`, REFUSED],
    [`${CLIENT}?a#ES256`, REFUSED],
    [`${CLIENT}/#ES256`, REFUSED],
    [`${CLIENT}:bob#ES256`, REFUSED],
    [`${CLIENT}.#ES256`, REFUSED],
    ['did:web:evil.example#ES256', REFUSED],
    ['https://client.example#ES256', REFUSED],
  ]
  for (const [kid, expected] of kids) expect([kid, await verified(await by({ ...EC, kid }))]).toEqual([kid, expected])
  // A good signature of somebody else, whose keys came along by mistake, or who calls them by the name of the sender's.
  const theirs = await by({ ...EC, kid: evil.key.id }, evil)
  expect(await verified(theirs, [evil.key])).toBe(REFUSED)
  expect(await verified(theirs, [evil.key], { ...QUESTION, from: 'did:web:evil.example' })).toBe(REFUSED)
  expect(await verified(await by({ alg: 'ES256' }, evil), [evil.key, ...KEYS])).toBe(REFUSED)
  expect(await verified(await by(EC, evil))).toBe(REFUSED)
  for (const from of [undefined, null, 1, [CLIENT], '', `${CLIENT}:bob`, `${CLIENT}/`]) {
    const members = { ...QUESTION, from } as unknown as Unsigned
    const { sig } = await signEnvelope(members, ec.signing)
    expect([from, await verified(sig, KEYS, members)]).toEqual([from, REFUSED])
  }
  expect(await verified(await by(EC), [])).toBe(REFUSED)
})

test('of many keys a signature that names none is tried with eight, and one that names its key with that', async () => {
  const many = (count: number) => Array.from({ length: count }, (_, at) => ({ ...ec.key, id: `${CLIENT}#${at}` }))
  const { key } = await makeSigner('ES256')
  const wrong = (count: number) => many(count).map(({ id }) => ({ ...key, id }))
  const unnamed = await by({ alg: 'ES256' })
  expect(await verified(unnamed, [ed.key, ...wrong(7), ec.key])).toBe('accepted')
  expect(await verified(unnamed, [...wrong(8), ec.key])).toBe(REFUSED)
  expect(await verified(await by(EC), [...wrong(60), ec.key])).toBe('accepted')
})

test('a signature in another form', async () => {
  const good = await by(EC)
  const [head = '', , tail = ''] = good.split('.')
  const others = [
    '',
    '.',
    '..',
    '...',
    head,
    `${head}.`,
    `${head}.${tail}`,
    `${head}..`,
    `..${tail}`,
    `${good}.`,
    `${good}.${tail}`,
    `.${good}`,
    `${good}=`,
    `${good}==`,
    `${head}=..${tail}`,
    `${head}.=.${tail}`,
    `${head}. .${tail}`,
    ` ${good}`,
    `${good}\n`,
    `${good}\u0000`,
    `${head}..${Buffer.from(tail, 'base64url').toString('base64')}`,
    `${head}..${tail.slice(0, -1)}`,
    `${head}..${tail}A`,
    `${good},${good}`,
    `${good} ${good}`,
    `${head}..${tail}${tail}`,
    JSON.stringify({ protected: head, signature: tail }),
    '\ud800..\ud800',
    'ä..ä',
  ]
  for (const sig of others) expect([sig, await verified(sig)]).toEqual([sig, REFUSED])
  // Bits that a lenient decoder ignores: 64 bytes leave four of the last letter.
  for (const letter of 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_') {
    const other = good.slice(0, -1) + letter
    expect([other, await verified(other)]).toEqual([other, other === good ? 'accepted' : REFUSED])
  }
})

test('the twin of an ES256 signature fits the same message, and no other', async () => {
  // Whoever keeps signatures apart by their text counts this one twice: the id of the message is what counts.
  const order = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n
  const [head = '', , tail = ''] = (await by(EC)).split('.')
  const bytes = Buffer.from(tail, 'base64url')
  const twin = (order - BigInt(`0x${bytes.subarray(32).toString('hex')}`)).toString(16).padStart(64, '0')
  const sig = `${head}..${url(Buffer.concat([bytes.subarray(0, 32), Buffer.from(twin, 'hex')]))}`
  expect(await verified(sig)).toBe('accepted')
  expect(await verified(sig, KEYS, { ...QUESTION, id: QUESTION.id.toUpperCase() })).toBe(REFUSED)
})

test('what is signed is what a reader reads', async () => {
  const ext = { when: new Date(0), none: undefined, list: [undefined, Number.NaN], own: { toJSON: () => 'text' } }
  const envelope = await signEnvelope({ ...QUESTION, ext }, ec.signing)
  const { members } = readEnvelope(JSON.stringify(envelope))
  expect(members['ext']).toEqual({ when: '1970-01-01T00:00:00.000Z', list: [null, null], own: 'text' })
  expect(await verified(envelope.sig, KEYS, members)).toBe('accepted')
  // An envelope is signed anew without its old signature.
  const again = await signEnvelope(envelope, ed.signing)
  expect(signedText(again)).toBe(signedText(envelope))
  expect(await verified(again.sig, KEYS, again)).toBe('accepted')
})

test.each<[string, Partial<Unsigned>, string]>([
  ['half a pair', { body: { type: 't', content: '\ud83d' } }, '4.00 surrogate'],
  ['a name beyond U+FFFF', { ext: { '😀': 1 } }, '4.00 name'],
  ['a whole number that is not safe', { ext: { a: 2 ** 53 } }, '4.00 number'],
  ['a name of the prototype', { ext: JSON.parse('{"__proto__":1}') as Record<string, unknown> }, '4.00 prototype'],
  ['too many levels', { ext: { a: JSON.parse('['.repeat(40) + ']'.repeat(40)) as unknown } }, '4.00 depth'],
])('what nobody would read is not signed: %s', async (_, more, refusal) => {
  expect(await outcome(() => signEnvelope({ ...QUESTION, ...more }, ec.signing))).toBe(refusal)
})

test('a key that cannot verify refuses, and does not throw', async () => {
  const agreement = (await crypto.subtle.generateKey({ name: 'ECDH', namedCurve: 'P-256' }, true, ['deriveBits'])) as CryptoKeyPair
  expect(await verified(await by(EC), [{ ...ec.key, key: agreement.publicKey }])).toBe(REFUSED)
  expect(await verified(await by(EC), [{ ...ec.key, key: ed.key.key }])).toBe(REFUSED)
})
