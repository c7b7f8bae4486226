import { describe, expect, test } from 'vitest'
import type { Keys } from '../../src/core/ports/keys.ts'

/** What every implementation of `Keys` does. `open` gives the same keys each time, `other` gives others. */
export function keysContract(name: string, { open, other }: { open: () => Keys; other: () => Keys }): void {
  describe(`keys: ${name}`, () => {
    test.each(['', 'a token', '{"json":true}', 'grüße 🙂', 'x'.repeat(100_000)])(
      'opens what it has sealed, also after a restart: %.20s',
      (text) => {
        const sealed = open().seal(text, 'record/1')
        if (text.length > 1) expect(sealed).not.toContain(text)
        expect(open().open(sealed, 'record/1')).toBe(text)
      },
    )

    test('seals the same text differently each time', () => {
      const keys = open()
      expect(keys.seal('token', 'a')).not.toBe(keys.seal('token', 'a'))
    })

    test('opens nothing that was sealed for another record', () => {
      const keys = open()
      const sealed = keys.seal('token', 'default/turn/1')
      for (const about of ['default/turn/2', 'default/turn/', '', 'default/turn/1 ']) {
        expect(() => keys.open(sealed, about)).toThrow(expect.objectContaining({ code: 'internal' }))
      }
    })

    test('opens nothing that another key has sealed', () => {
      expect(other().id).not.toBe(open().id)
      expect(() => open().open(other().seal('token', 'a'), 'a')).toThrow(expect.objectContaining({ code: 'internal' }))
    })

    test('opens nothing that was changed or cut off, and says nothing of it', () => {
      const keys = open()
      const sealed = keys.seal('token', 'a')
      const changed = Array.from(sealed, (letter, index) => sealed.slice(0, index) + (letter === 'A' ? 'B' : 'A') + sealed.slice(index + 1))
      const cut = Array.from(sealed, (_, index) => sealed.slice(0, index))
      // The last letter of base64 may have bits that count for nothing.
      for (const text of [...changed.slice(0, -1), ...cut, 'token', `${sealed}:x`.replace(keys.id, '')]) {
        if (text === sealed) continue
        expect(() => keys.open(text, 'a')).toThrow(expect.objectContaining({ code: 'internal', message: 'Internal error' }))
      }
    })

    test('digests the same text to the same, and each key to its own', () => {
      expect(open().digest('token')).toBe(open().digest('token'))
      expect(open().digest('token')).not.toBe(open().digest('Token'))
      expect(open().digest('token')).not.toBe(other().digest('token'))
      expect(open().digest('token')).not.toContain('token')
    })
  })
}
