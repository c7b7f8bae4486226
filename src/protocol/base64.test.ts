import fc from 'fast-check'
import { expect, test } from 'vitest'
import { base64, bytesIn, fromBase64, joinBase64 } from './base64.ts'
import { joinedBytes } from './bytes.ts'

// RFC 4648 §10.
test.each([
  ['', ''],
  ['f', 'Zg=='],
  ['fo', 'Zm8='],
  ['foo', 'Zm9v'],
  ['foob', 'Zm9vYg=='],
  ['fooba', 'Zm9vYmE='],
  ['foobar', 'Zm9vYmFy'],
])('"%s" is "%s"', (text, encoded) => {
  const bytes = new TextEncoder().encode(text)
  expect(base64(bytes)).toBe(encoded)
  expect(fromBase64(encoded)).toEqual(bytes)
})

test('any bytes are written as others write them, and come back', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 1000 }), fc.nat(3), (bytes, start) => {
      // Also of a view into larger memory.
      const part = bytes.subarray(start)
      expect(base64(part)).toBe(Buffer.from(part).toString('base64'))
      expect(bytesIn(base64(part))).toEqual(new Uint8Array(part))
    }),
  )
})

test('many bytes overflow nothing', () => {
  const bytes = new Uint8Array(10 * 1024 * 1024).map((_, at) => at * 31)
  const text = base64(bytes)
  expect(text === Buffer.from(bytes).toString('base64')).toBe(true)
  expect(Buffer.compare(fromBase64(text), bytes)).toBe(0)
})

test('texts are joined as their bytes are, padded or not', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 20 }), { maxLength: 8 }), (pieces) => {
      expect(joinBase64(pieces.map(base64))).toBe(base64(joinedBytes(pieces)))
    }),
  )
  // Cut anywhere.
  expect(joinBase64(['Zm9', 'vYm', 'E=', 'Zg=='])).toBe(base64(new TextEncoder().encode('foobaf')))
  expect(() => joinBase64(['Zg==', '%'])).toThrow()
})

test('what is no base64 is none', () => {
  expect(() => fromBase64('%%%%')).toThrow()
  expect(bytesIn('Zg=')).toBeUndefined()
})

test('bytes are put together in order', () => {
  const piece = (...bytes: number[]) => Uint8Array.from(bytes)
  expect(joinedBytes([piece(1, 2), piece(), piece(3)])).toEqual(piece(1, 2, 3))
  expect(joinedBytes([])).toEqual(piece())
})
