import { brotliCompressSync, brotliDecompressSync, gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { outcome } from '../../test/support/envelopes.ts'
import { verifies } from '../../test/support/verifies.ts'
import { bodyOf, openBody, type OpenOptions } from './body.ts'
import { COMPRESSIONS, ENCODINGS, type Body } from './schema.ts'

const MOST = 1_000_000
/** Unpacks to no more than its bound, as the port demands. */
const brotli: OpenOptions['brotli'] = async (packed, maxBytes) => {
  try {
    return brotliDecompressSync(packed, { maxOutputLength: maxBytes })
  } catch (thrown) {
    throw (thrown as { code?: string }).code === 'ERR_BUFFER_TOO_LARGE' ? new RangeError('too large') : thrown
  }
}

const body = (content: string, encoding?: string, compression?: string): Body => ({
  type: 'text/plain',
  content,
  ...(encoding !== undefined && { encoding }),
  ...(compression !== undefined && { compression }),
})
const packed = (bytes: Uint8Array, compression = 'gzip') => body(Buffer.from(bytes).toString('base64'), 'base64', compression)
const text = async (of: Body, more: Partial<OpenOptions> = {}) => Buffer.from(await openBody(of, { maxBytes: MOST, ...more })).toString()
const refusal = (of: Body, more: Partial<OpenOptions> = {}) => outcome(() => text(of, more))

const HELLO = 'hällo 😀?>'
const IN_BASE64 = Buffer.from(HELLO).toString('base64')
const IN_BASE64URL = Buffer.from(HELLO).toString('base64url')

verifies('envelope:encoding', 'every encoding and compression has its content, and a bound', async () => {
  expect(await text(body(HELLO))).toBe(HELLO)
  expect(await text(body(HELLO, 'utf-8', 'none'))).toBe(HELLO)
  expect(await text(body(IN_BASE64, 'base64'))).toBe(HELLO)
  expect(await text(body(IN_BASE64URL, 'base64url'))).toBe(HELLO)
  expect(await text(packed(gzipSync(HELLO)))).toBe(HELLO)
  expect(await text(body(gzipSync(HELLO).toString('base64url'), 'base64url', 'gzip'))).toBe(HELLO)
  expect(await text(packed(brotliCompressSync(HELLO), 'br'), { brotli })).toBe(HELLO)
  expect(await refusal(packed(gzipSync(Buffer.alloc(MOST + 1, 'abc'))))).toBe('4.13 body')
  expect(await refusal(packed(brotliCompressSync(Buffer.alloc(MOST + 1)), 'br'), { brotli })).toBe('4.13 body')
})

test('every encoding that is known goes with every compression, but text with none', async () => {
  const pack = { none: Buffer.from(HELLO), gzip: gzipSync(HELLO), br: brotliCompressSync(HELLO) }
  for (const encoding of ENCODINGS) {
    for (const compression of COMPRESSIONS) {
      const of = body(pack[compression].toString(encoding), encoding, compression)
      const isText = encoding === 'utf-8' && compression !== 'none'
      expect([encoding, compression, await refusal(of, { brotli })]).toEqual([encoding, compression, isText ? '4.00 encoding' : 'accepted'])
    }
  }
})

test.each([
  ['another encoding', body('x', 'hex'), '4.15 encoding'],
  ['an encoding in another case', body('x', 'UTF-8'), '4.15 encoding'],
  ['an encoding of many characters', body('x', 'x'.repeat(100_000)), '4.15 encoding'],
  ['an encoding of the prototype', body('x', '__proto__'), '4.15 encoding'],
  ['another compression', packed(gzipSync('x'), 'zstd'), '4.15 compression'],
  ['brotli without a port', packed(brotliCompressSync('x'), 'br'), '4.15 compression'],
  ['gzip as text', body('x', 'utf-8', 'gzip'), '4.00 encoding'],
  ['gzip without an encoding', body('x', undefined, 'gzip'), '4.00 encoding'],
  ['base64url as base64', body('_-_-', 'base64'), '4.00 encoding'],
  ['base64 as base64url', body('/+/+', 'base64url'), '4.00 encoding'],
  ['base64url with padding', body('YQ==', 'base64url'), '4.00 encoding'],
  ['a letter too many', body('YWFhY', 'base64'), '4.00 encoding'],
  ['padding too much', body('YWE==', 'base64'), '4.00 encoding'],
  ['padding too little', body('YQ=', 'base64'), '4.00 encoding'],
  ['padding in the middle', body('YQ==YQ==', 'base64'), '4.00 encoding'],
  ['white space in base64', body('YW Fh', 'base64'), '4.00 encoding'],
  ['a line break at the end', body('YWFh\n', 'base64'), '4.00 encoding'],
  ['a line break at the end of base64url', body('YWFh\n', 'base64url'), '4.00 encoding'],
  ['letters beyond ASCII', body('YWFä', 'base64'), '4.00 encoding'],
] as const)('%s is refused', async (_, of, code) => {
  expect(await refusal(of)).toBe(code)
})

const LONG = 'hello '.repeat(100)

test.each([
  ['nothing', new Uint8Array()],
  ['one byte', new Uint8Array([0x1f])],
  ['a head alone', gzipSync(LONG).subarray(0, 10)],
  ['cut in the middle', gzipSync(LONG).subarray(0, 20)],
  ['without its last byte', gzipSync(LONG).subarray(0, -1)],
  ['without its length', gzipSync(LONG).subarray(0, -4)],
  ['with a wrong checksum', gzipSync(LONG).map((byte, at, { length }) => (at === length - 8 ? byte ^ 1 : byte))],
  ['with a wrong length', gzipSync(LONG).map((byte, at, { length }) => (at === length - 4 ? byte ^ 1 : byte))],
  ['with something behind it', Buffer.concat([gzipSync(LONG), Buffer.from('garbage')])],
  ['with zeros behind it', Buffer.concat([gzipSync(LONG), Buffer.alloc(512)])],
  ['in two members', Buffer.concat([gzipSync(LONG), gzipSync('world')])],
  ['that is text', Buffer.from(LONG)],
  ['that is zlib', Buffer.from('789c4bcc4d0500027e01b0', 'hex')],
  ['that is brotli', brotliCompressSync(LONG)],
])('gzip %s cannot be unpacked', async (_, bytes) => {
  expect(await refusal(packed(bytes))).toBe('4.00 compression')
})

test.each([
  ['cut', brotliCompressSync(LONG).subarray(0, -2)],
  ['that is gzip', gzipSync(LONG)],
])('brotli %s cannot be unpacked', async (_, bytes) => {
  expect(await refusal(packed(bytes, 'br'), { brotli })).toBe('4.00 compression')
})

/** A gzip that becomes exactly so many times as large: what its head may carry fills it up. */
function timesAsLarge(times: number): Uint8Array {
  const size = 50_000
  const plain = gzipSync(Buffer.alloc(size))
  const head = Buffer.from(plain.subarray(0, 10))
  head[3] = 0x10
  const comment = Buffer.alloc(size / times - plain.length, 'c')
  comment[comment.length - 1] = 0
  return Buffer.concat([head, comment, plain.subarray(10)])
}

test('a body may become a hundred times as large, and no larger', async () => {
  expect(timesAsLarge(100)).toHaveLength(500)
  expect(await text(packed(timesAsLarge(100)))).toHaveLength(50_000)
  expect(await refusal(packed(timesAsLarge(125)))).toBe('4.13 body')
  expect(await refusal(packed(gzipSync(Buffer.alloc(900_000))))).toBe('4.13 body')
})

test('a body may have all of the bytes that it may have, and no more', async () => {
  const noise = Buffer.from(Array.from({ length: 1000 }, (_, at) => (at * at * 7919) % 251))
  for (const of of [packed(noise, 'none'), packed(gzipSync(noise)), body('ä'.repeat(500))]) {
    expect(await refusal(of, { maxBytes: 1000 })).toBe('accepted')
    expect(await refusal(of, { maxBytes: 999 })).toBe('4.13 body')
  }
  expect(await text(packed(gzipSync('')))).toBe('')
})

test('a bomb of a gigabyte costs no more than the bound', async () => {
  const tenMegabytes = gzipSync(Buffer.alloc(10_000_000))
  const bomb = gzipSync(Buffer.concat(Array.from({ length: 100 }, () => tenMegabytes)))
  expect(await refusal(packed(bomb))).toBe('4.13 body')
  expect(await refusal(packed(tenMegabytes))).toBe('4.13 body')
})

test('what is longer than it may become is not decoded', async () => {
  expect(await refusal(body('!'.repeat(3 * MOST), 'base64'))).toBe('4.13 body')
})

test('a body for a text, and for bytes', async () => {
  expect(bodyOf('text/plain', HELLO)).toEqual({ type: 'text/plain', content: HELLO })
  expect(bodyOf('image/png', new Uint8Array([1, 2]))).toEqual({ type: 'image/png', content: 'AQI=', encoding: 'base64' })
  expect(await text(bodyOf('x', Buffer.from(HELLO)))).toBe(HELLO)
  // A text that was cut in the middle of a character could not be signed.
  expect(bodyOf('text/plain', HELLO.slice(0, 7)).content).toBe('hällo \ufffd')
})
