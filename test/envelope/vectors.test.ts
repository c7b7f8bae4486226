import { expect, test } from 'vitest'
import { canonicalJson } from '../../src/protocol/canonical-json.ts'
import { hashOf, signedText } from '../../src/envelope/canonical.ts'
import { importedKey } from '../../src/envelope/did-document.ts'
import { readSignature, readEnvelope, verifySignature, type VerifyKey } from '../../src/envelope/index.ts'
import { isSignature, signEnvelope } from '../../src/envelope/signature.ts'
import { verifies } from '../support/verifies.ts'

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)
const decoded = (text: string): Uint8Array => new Uint8Array(Buffer.from(text, 'base64url'))
const keyOf = async (id: string, jwk: object): Promise<VerifyKey> => {
  const key = await importedKey(id, jwk)
  if (!key) throw new Error(`${id} is no key`)
  return key
}

test('RFC 8785 §3.2.2: numbers, texts and literals', () => {
  const value = {
    numbers: [Number('333333333.33333329'), 1e30, 4.5, 2e-3, 0.000000000000000000000000001],
    string: '\u20ac$\u000F\u000aA\'\u0042\u0022\u005c\\"/',
    literals: [null, true, false],
  }
  expect(canonicalJson(value)).toBe(
    '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}',
  )
})

test('RFC 8785 §3.2.3: members are sorted by UTF-16 units', () => {
  const value = {
    '\u20ac': 'Euro Sign',
    '\r': 'Carriage Return',
    '\ufb33': 'Hebrew Letter Dalet With Dagesh',
    '1': 'One',
    '\ud83d\ude00': 'Emoji: Grinning Face',
    '\u0080': 'Control',
    '\u00f6': 'Latin Small Letter O With Diaeresis',
  }
  expect(canonicalJson(value)).toBe(
    '{"\\r":"Carriage Return","1":"One","\u0080":"Control","ö":"Latin Small Letter O With Diaeresis","€":"Euro Sign",' +
      '"😀":"Emoji: Grinning Face","\ufb33":"Hebrew Letter Dalet With Dagesh"}',
  )
})

test('RFC 8785, appendix B: how numbers are written', () => {
  const written: readonly [number, string][] = [
    [0, '0'],
    [-0, '0'],
    [5e-324, '5e-324'],
    [-1.7976931348623157e308, '-1.7976931348623157e+308'],
    [9007199254740992, '9007199254740992'],
    [295147905179352830000, '295147905179352830000'],
    [9.999999999999997e22, '9.999999999999997e+22'],
    [1e23, '1e+23'],
    [999999999999999700000, '999999999999999700000'],
    [1e21, '1e+21'],
    [9.999999999999997e-7, '9.999999999999997e-7'],
    [0.000001, '0.000001'],
    [333333333.3333332, '333333333.3333332'],
    [Number('1424953923781206.25'), '1424953923781206.2'],
  ]
  for (const [value, text] of written) expect(canonicalJson(value)).toBe(text)
})

test('RFC 7515, appendix A.3: a signature by ES256', async () => {
  const key = await keyOf('did:web:a#1', {
    kty: 'EC',
    crv: 'P-256',
    x: 'f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU',
    y: 'x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0',
  })
  const input = 'eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ'
  const signature = decoded('DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q')
  expect(await isSignature(key, signature, bytes(input))).toBe(true)
  expect(await isSignature(key, signature, bytes(`${input}x`))).toBe(false)
})

/** RFC 8037, appendix A.1. */
const EDWARDS = { kty: 'OKP', crv: 'Ed25519', x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo' }

test('RFC 8037, appendix A.4: a signature by EdDSA', async () => {
  const key = await keyOf('did:web:a#1', EDWARDS)
  const signature = decoded('hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg')
  expect(await isSignature(key, signature, bytes('eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc'))).toBe(true)
})

/** Written by hand. The hash is that of sha256sum, and the signature that of openssl with the key of RFC 8037. */
const TEXT =
  '{"body":{"content":"2+2 — €","type":"text/plain"},"delta_window":64,"ext":{"a":{"b":[1,0.5,-3],"ö":null},"x-trace":"b3:80f198ee"},' +
  '"from":"did:web:client.example","id":"urn:uuid:6f2b1a60-3d7e-4c35-9a5b-0c1d2e3f4a5b","intent":"ask","to":["did:web:worker.example"],' +
  '"ts":"2026-01-31T12:00:00.000Z"}'
const HASH = '94897db2952be358e392f65aa41a28c00f4546f4dd372c2bcba5910f7b2d1dc8'
const SIG =
  'eyJhbGciOiJFZERTQSIsImtpZCI6ImRpZDp3ZWI6Y2xpZW50LmV4YW1wbGUjcmZjODAzNyIsInR5cCI6InVhbXArandzIn0..' +
  'bRuh9IPkHSH4cKRNgLqN7wOnBL6aEbplbnqOX6J9CpI-I50_vDdSUh9lhwFzgIcx0aac9-iOGCMPbzCprehJDw'
/** The same message as somebody may send it: members in another order, white space, escapes, and other ways to write its numbers. */
const SENT = `{ "sig": "${SIG}",
  "ts": "2026-01-31T12:00:00.000Z", "to": ["did:web:worker.example"], "intent": "\\u0061sk",
  "id": "urn:uuid:6f2b1a60-3d7e-4c35-9a5b-0c1d2e3f4a5b", "from": "did:web:client.example",
  "ext": { "x-trace": "b3:80f198ee", "a": { "\\u00f6": null, "b": [1.0, 5e-1, -3] } },
  "delta_window": 64, "body": { "type": "text/plain", "content": "2+2 \\u2014 \\u20ac" } }`

verifies('envelope:canonical', 'an envelope by hand has the text, the hash and the signature that others make of it', async () => {
  const { members, envelope } = readEnvelope(bytes(SENT))
  expect(signedText(members)).toBe(TEXT)
  expect(await hashOf(members)).toBe(HASH)
  const keys = [await keyOf('did:web:client.example#rfc8037', EDWARDS)]
  expect(await verifySignature(members, readSignature(envelope.sig), keys)).toEqual({ hash: HASH, key: keys[0] })
})

test('signed by us it has the same signature', async () => {
  const { sig: _, ...unsigned } = readEnvelope(SENT).envelope
  const jwk = { ...EDWARDS, d: 'nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A' }
  const secret = await crypto.subtle.importKey('jwk', jwk, { name: 'Ed25519' }, false, ['sign'])
  const sign = async (input: Uint8Array) => new Uint8Array(await crypto.subtle.sign('Ed25519', secret, input as BufferSource))
  const { sig } = await signEnvelope(unsigned, { id: 'did:web:client.example#rfc8037', alg: 'EdDSA', sign })
  expect(sig).toBe(SIG)
})

test('what a replacer array would have left out is signed', async () => {
  const pay = (content: string) => hashOf({ id: '1', body: { type: 'text/plain', content } })
  expect(await pay('pay alice 1')).not.toBe(await pay('pay mallory 999'))
})
