import fc from 'fast-check'
import { expect, test } from 'vitest'
import { bytesOf, isCanonical, objectIn } from './compact-jws.ts'

test('a part is canonical if an encoder writes it so', () => {
  const letters = fc.string({
    unit: fc.constantFrom('A', 'B', 'Q', 'g', 'w', 'E', '_', '-', '8', '9', '=', '+', '/', ' ', '\n'),
    minLength: 1,
    maxLength: 9,
  })
  fc.assert(
    fc.property(letters, (part) => {
      expect(isCanonical(part)).toBe(Buffer.from(part, 'base64url').toString('base64url') === part)
    }),
    { numRuns: 3000 },
  )
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 1 }), (bytes) => {
      const part = Buffer.from(bytes).toString('base64url')
      expect(isCanonical(part)).toBe(true)
      expect(bytesOf(part)).toEqual(bytes)
    }),
  )
  expect(isCanonical('')).toBe(false)
})

test('the object in a part', () => {
  const inPart = (text: string | Uint8Array) => objectIn(Buffer.from(text as string).toString('base64url'))
  expect(inPart('{"a":1}')).toEqual({ a: 1 })
  for (const text of ['[]', 'null', '1', '{', '', new Uint8Array([0x22, 0xff, 0x22])]) expect(inPart(text)).toBeUndefined()
  expect(objectIn('!')).toBeUndefined()
})
