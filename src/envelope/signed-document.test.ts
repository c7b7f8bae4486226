import { expect, test } from 'vitest'
import { CLIENT, makeSigner, outcome } from '../../test/support/envelopes.ts'
import { verifies } from '../../test/support/verifies.ts'
import { parseValue } from '../wire/parse.ts'
import { Manifest } from './schema.ts'
import { signDocument, verifyDocument } from './signed-document.ts'
import type { VerifyKey } from './signature.ts'

const ec = await makeSigner('ES256')
const ed = await makeSigner('EdDSA')
const other = await makeSigner('ES256')
const KEYS = [ec.key, ed.key]
const MANIFEST = {
  agent: 'uamp/1.0',
  description: 'Answers, ä 😀',
  intents: ['ask'],
  body_types: ['text/plain'],
  auth: ['oauth2'],
  limits: { max_body_kb: 64 },
}
const SIGNATURE = '4.01 signature'

/** A document with this header and this body as they are, signed well. */
async function signedAs(header: unknown, body: string = JSON.stringify(MANIFEST), { signing } = ec): Promise<string> {
  const head = typeof header === 'string' ? header : JSON.stringify(header)
  const input = [head, body].map((text) => Buffer.from(text).toString('base64url')).join('.')
  return `${input}.${Buffer.from(await signing.sign(Buffer.from(input))).toString('base64url')}`
}
const HEADER = { alg: 'ES256', kid: ec.key.id, typ: 'manifest+jws' }
const refusal = (text: string, keys: readonly VerifyKey[] = KEYS) => outcome(() => verifyDocument(text, 'manifest+jws', keys))

verifies('envelope:signed-document', 'a manifest is signed by a key of its server, as a manifest', async () => {
  for (const { signing } of [ec, ed]) {
    const text = await signDocument(MANIFEST, 'manifest+jws', signing)
    expect(JSON.parse(Buffer.from(text.split('.')[0] ?? '', 'base64url').toString())).toEqual({
      alg: signing.alg,
      kid: signing.id,
      typ: 'manifest+jws',
    })
    expect(parseValue(Manifest, await verifyDocument(text, 'manifest+jws', KEYS))).toEqual(MANIFEST)
    // As another kind of document, by other keys, or by those of another host.
    expect(await outcome(() => verifyDocument(text, 'hub+jws', KEYS))).toBe(SIGNATURE)
    expect(await refusal(text, [])).toBe(SIGNATURE)
    expect(await refusal(text, [{ ...other.key, id: signing.id }])).toBe(SIGNATURE)
    expect(
      await refusal(
        text,
        KEYS.map((key) => ({ ...key, id: key.id.replace(CLIENT, 'did:web:evil.example') })),
      ),
    ).toBe(SIGNATURE)
  }
  expect(await refusal(await signDocument({}, 'hub+jws', ec.signing))).toBe(SIGNATURE)
})

test.each<[string, unknown, string]>([
  ['as it should be', HEADER, 'accepted'],
  ['whose kid has another case of the host', { ...HEADER, kid: 'did:web:CLIENT.example#ES256' }, 'accepted'],
  ['whose typ is a whole media type', { ...HEADER, typ: 'application/Manifest+JWS' }, 'accepted'],
  ['without a typ', { ...HEADER, typ: undefined }, SIGNATURE],
  ['of a message', { ...HEADER, typ: 'uamp+jws' }, SIGNATURE],
  ['whose typ is no text', { ...HEADER, typ: ['manifest+jws'] }, SIGNATURE],
  ['without a kid', { ...HEADER, kid: undefined }, SIGNATURE],
  ['whose kid is relative', { ...HEADER, kid: '#ES256' }, SIGNATURE],
  ['whose kid is of another host', { ...HEADER, kid: 'did:web:evil.example#ES256' }, SIGNATURE],
  ['whose kid is another key', { ...HEADER, kid: ed.key.id }, SIGNATURE],
  ['whose kid is in another case', { ...HEADER, kid: `${CLIENT}#es256` }, SIGNATURE],
  ['without an algorithm', { ...HEADER, alg: undefined }, SIGNATURE],
  ['by another algorithm', { ...HEADER, alg: 'ES384' }, SIGNATURE],
  ['by none', { ...HEADER, alg: 'none' }, SIGNATURE],
  ['by an algorithm of another key', { ...HEADER, alg: 'EdDSA' }, SIGNATURE],
  ['that brings its key', { ...HEADER, jwk: other.jwk }, SIGNATURE],
  ['with crit', { ...HEADER, crit: [] }, SIGNATURE],
  ['with b64', { ...HEADER, b64: true }, SIGNATURE],
  ['with a member twice', JSON.stringify(HEADER).replace('{', '{"kid":"x",'), SIGNATURE],
  ['whose header is an array', [HEADER], SIGNATURE],
  ['whose header is no JSON', 'x', SIGNATURE],
])('a document %s', async (_, header, expected) => {
  expect(await refusal(await signedAs(header))).toBe(expected)
})

test('a name of EdDSA that is its curve', async () => {
  const header = { ...HEADER, alg: 'Ed25519', kid: ed.key.id }
  expect(await refusal(await signedAs(header, '{}', ed))).toBe('accepted')
})

test.each([
  ['a member twice', '{"agent":"uamp/1.0","agent":"uamp/1.1"}', '4.00 duplicate'],
  ['a member twice, deep inside', '{"a":[{"b":1,"\\u0062":2}]}', '4.00 duplicate'],
  ['half a pair', '{"a":"\\ud800"}', '4.00 surrogate'],
  ['a byte order mark', '\ufeff{}', '4.00 not_json'],
  ['an array', '[]', '4.00 not_json'],
  ['no JSON', '<manifest/>', '4.00 not_json'],
])('a document that is signed, with %s', async (_, body, expected) => {
  expect(await refusal(await signedAs(HEADER, body))).toBe(expected)
})

test('a document in another form', async () => {
  const good = await signedAs(HEADER)
  const [head = '', body = '', tail = ''] = good.split('.')
  expect(await refusal(`\n${good} \r\n`)).toBe('accepted')
  const others = [
    '',
    '..',
    'x',
    `${head}.${body}`,
    `${head}.${body}.`,
    `${head}..${tail}`,
    `.${body}.${tail}`,
    `${good}.`,
    `${good}.x`,
    `${good}=`,
    `${head}=.${body}.${tail}`,
    `${head}.${body}.${tail}\u0000`,
    `${head}.${body} .${tail}`,
    JSON.stringify({ protected: head, payload: body, signature: tail }),
    `${head}.${'A'.repeat(256 * 1024)}.${tail}`,
  ]
  for (const text of others) expect([text.slice(0, 80), await refusal(text)]).toEqual([text.slice(0, 80), SIGNATURE])
})

test('no letter of a document can be another', async () => {
  const good = await signedAs(HEADER, '{"a":1}')
  for (let at = 0; at < good.length; at++) {
    const letter = good[at] === 'A' ? 'B' : 'A'
    expect([at, await refusal(good.slice(0, at) + letter + good.slice(at + 1))]).toEqual([at, SIGNATURE])
  }
})
