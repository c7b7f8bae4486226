/** Whatever somebody sends: it is read, or refused with a code. Nothing else is thrown. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { checkCapability } from '../../src/envelope/capability.ts'
import { importedKey } from '../../src/envelope/did-document.ts'
import { strictObject } from '../../src/envelope/strict-json.ts'
import {
  documentUrl,
  isSameDid,
  openBody,
  readEnvelope,
  readSignature,
  signingKeys,
  verifyDocument,
  verifySignature,
} from '../../src/envelope/index.ts'
import type { Body } from '../../src/envelope/schema.ts'
import { CLIENT, makeSigner, outcome, QUESTION } from '../support/envelopes.ts'
import { isLong } from '../support/trials.ts'

const numRuns = isLong ? 20_000 : 2000
const { key } = await makeSigner('ES256')
const CODE = /^(?:accepted|4\.\d\d(?: [a-z0-9_]+)?)$/

const text = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.constantFrom(
    '',
    CLIENT,
    '#1',
    `${CLIENT}#1`,
    'EC',
    'OKP',
    'P-256',
    'Ed25519',
    'ES256',
    'gzip',
    'base64',
    'utf-8',
    'H4sIAAAAAAAAA',
    '\ud800',
    '*',
    'ask',
  ),
)
const anything = fc.anything({ values: [text, fc.integer(), fc.double(), fc.constant(null), fc.boolean()], key: text, maxDepth: 3 })
/** An object of which some members are as they should be. */
const some = (members: Readonly<Record<string, unknown>>) =>
  fc.record(
    Object.fromEntries(
      Object.entries(members).map(([name, value]) => [name, fc.oneof({ weight: 4, arbitrary: fc.constant(value) }, anything)]),
    ),
    {
      requiredKeys: [],
    },
  )

test('messages of any bytes and of any members', async () => {
  const message = some({ ...QUESTION, sig: 'eyJhbGciOiJFUzI1NiJ9..AAAA' }).map((members) => JSON.stringify(members))
  const near = fc.oneof(
    message,
    message.map((json) => Buffer.from(json)),
    fc.uint8Array(),
    fc.string({ unit: fc.constantFrom(...'{}[]",:\\u0aE-.1 '.split('')) }),
  )
  const run = async (sent: string | Uint8Array) => {
    const code = await outcome(() => {
      const { members, envelope } = readEnvelope(sent)
      return verifySignature(members, readSignature(envelope.sig), [key])
    })
    expect(code).toMatch(/^4\.(?:0[01]|13) [a-z0-9_]+$/)
  }
  await fc.assert(fc.asyncProperty(near, run), { numRuns })
}, 600_000)

test('signatures with any header, payload and tail', async () => {
  const part = (inner: fc.Arbitrary<unknown>) =>
    fc.oneof(
      inner.map((value) => Buffer.from(JSON.stringify(value) ?? '').toString('base64url')),
      text,
      fc.constant(''),
    )
  const header = some({ alg: 'ES256', kid: key.id, typ: 'uamp+jws' })
  const sig = fc
    .array(fc.oneof(part(header), part(some({ sha256: '0'.repeat(64) }))), { minLength: 1, maxLength: 4 })
    .map((parts) => parts.join('.'))
  const run = async (each: string) => {
    expect(await outcome(() => verifySignature({ ...QUESTION }, readSignature(each), [key]))).toBe('4.01 signature')
    expect(await outcome(() => verifyDocument(each, 'hub+jws', [key]))).toBe('4.01 signature')
  }
  await fc.assert(fc.asyncProperty(sig, run), { numRuns })
}, 600_000)

test('DID documents, keys, DIDs, claims and bodies of any content', async () => {
  const jwk = some({ kty: 'OKP', crv: 'Ed25519', x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo' })
  const method = fc.oneof(
    anything,
    jwk.chain((publicKeyJwk) => some({ id: `${CLIENT}#1`, controller: CLIENT, publicKeyJwk })),
  )
  const methods = fc.oneof(anything, fc.array(method, { maxLength: 3 }))
  const document = fc
    .tuple(methods, methods)
    .chain(([verificationMethod, assertionMethod]) => some({ id: CLIENT, verificationMethod, assertionMethod }))
  const use = { audience: [CLIENT], from: CLIENT, intent: 'ask', agent: 'bob', now: 0, thumbprint: 'x' } as const
  const claims = some({ aud: CLIENT, exp: 1, iat: 0, sub: CLIENT, cnf: { jkt: 'x' }, scope: 'ask' })
  const body = fc.record({ type: text, content: text, encoding: text, compression: text }, { requiredKeys: ['type', 'content'] })
  const run = async (given: unknown, anyJwk: unknown, did: string, token: Record<string, unknown>, packed: unknown) => {
    for (const each of [
      () => signingKeys(given, CLIENT),
      () => signingKeys({ id: did, assertionMethod: [{ id: did, publicKeyJwk: anyJwk }] }, did),
      () => importedKey(did, anyJwk),
      () => documentUrl(did),
      () => isSameDid(did, CLIENT),
      () => checkCapability(token, use),
      () => openBody(packed as Body, { maxBytes: 1000 }),
    ]) {
      expect(await outcome(each)).toMatch(CODE)
    }
  }
  await fc.assert(fc.asyncProperty(document, jwk, text, claims, body, run), { numRuns })
}, 600_000)

/** JSON as it is written: an object is a list, so that it may have a member twice. */
type Written = { readonly json: string; readonly faults: readonly string[] }

const leaf = (rows: Readonly<Record<string, string | undefined>>) =>
  fc.constantFrom(...Object.entries(rows).map(([json, fault]): Written => ({ json, faults: fault === undefined ? [] : [fault] })))
const NAMES: Readonly<Record<string, string>> = {
  '"a"': 'a',
  '"\\u0061"': 'a',
  '"b"': 'b',
  '"\\""': '"',
  '"\\\\"': '\\',
  '"\\u005C"': '\\',
  '"}"': '}',
  '""': '',
  '",{"': ',{',
}
const space = fc.constantFrom('', ' ', '\n')

const { value } = fc.letrec<{ value: Written; object: Written; array: Written }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 5 },
    leaf({
      '1': undefined,
      '-0.5e-3': undefined,
      '"a"': undefined,
      '"{\\"a\\":1,"': undefined,
      '"\\\\"': undefined,
      true: undefined,
      '[]': undefined,
      '1e400': 'number',
      '9007199254740992': 'number',
      '"\\ud800"': 'surrogate',
      '{"__proto__":1}': 'prototype',
    }),
    tie('object'),
    tie('array'),
  ),
  array: fc
    .tuple(fc.array(tie('value'), { maxLength: 4 }), space)
    .map(([entries, gap]) => joined(entries, (all) => `[${gap}${all.join(`${gap},`)}${gap}]`)),
  object: fc.array(fc.tuple(fc.constantFrom(...Object.keys(NAMES)), tie('value'), space), { maxLength: 4 }).map((members) => {
    const names = members.map(([name]) => NAMES[name])
    const { json, faults } = joined(
      members.map(([, each]) => each),
      (all) => `{${all.map((each, at) => `${members[at]?.[2]}${members[at]?.[0]}${members[at]?.[2]}:${each}`).join()}}`,
    )
    return { json, faults: new Set(names).size < names.length ? [...faults, 'duplicate'] : faults }
  }),
}))

function joined(parts: readonly Written[], join: (all: readonly string[]) => string): Written {
  return { json: join(parts.map(({ json }) => json)), faults: parts.flatMap(({ faults }) => faults) }
}

test('JSON is refused if there is a fault at any depth, and for one that there is', async () => {
  const run = async ({ json, faults }: Written) => {
    const message = `{"m":${json}}`
    const code = await outcome(() => strictObject(message))
    if (faults.length === 0) expect([message, code]).toEqual([message, 'accepted'])
    else expect(faults.map((fault) => `4.00 ${fault}`)).toContain(code)
    if (faults.length === 0) expect(strictObject(message)).toEqual(JSON.parse(message))
  }
  await fc.assert(fc.asyncProperty(value, run), { numRuns })
})
