import { describe, expect, test } from 'vitest'
import type { Blobs } from '../../src/core/ports/blobs.ts'

async function* pieces(...texts: readonly string[]): AsyncGenerator<Uint8Array, void> {
  for (const text of texts) yield new TextEncoder().encode(text)
}

async function textOf(bytes: AsyncIterable<Uint8Array>): Promise<string> {
  let text = ''
  for await (const piece of bytes) text += new TextDecoder().decode(piece)
  return text
}

const most = 1000

/** What every place for bytes must do. `open` gives an empty one. */
export function blobsContract(name: string, open: () => Blobs): void {
  describe(`blobs: ${name}`, () => {
    test('gives back what was put, and how much it is', async () => {
      const blobs = open()
      expect(await blobs.put('k', pieces('one ', '', 'two'), { most })).toBe(7)
      expect(await blobs.size('k')).toBe(7)
      expect(await textOf(blobs.read('k'))).toBe('one two')
    })

    test('gives a part', async () => {
      const blobs = open()
      await blobs.put('k', pieces('0123456789'), { most })
      expect(await textOf(blobs.read('k', { start: 2, end: 5 }))).toBe('234')
      expect(await textOf(blobs.read('k', { start: 9, end: 10 }))).toBe('9')
      expect(await textOf(blobs.read('k', { start: 3, end: 3 }))).toBe('')
    })

    test('has nothing where nothing was put', async () => {
      const blobs = open()
      expect(await blobs.size('none')).toBeUndefined()
      await expect(textOf(blobs.read('none'))).rejects.toThrow()
      await blobs.delete('none')
      await blobs.sweep(Infinity)
    })

    test('takes an empty one', async () => {
      const blobs = open()
      expect(await blobs.put('k', pieces(), { most })).toBe(0)
      expect(await blobs.size('k')).toBe(0)
      expect(await textOf(blobs.read('k'))).toBe('')
    })

    test('never replaces, also when two are put at once', async () => {
      const blobs = open()
      const both = await Promise.allSettled([blobs.put('k', pieces('a'), { most }), blobs.put('k', pieces('b'), { most })])
      expect(both.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
      const kept = await textOf(blobs.read('k'))
      await expect(blobs.put('k', pieces('c'), { most })).rejects.toMatchObject({ code: 'conflict' })
      expect(await textOf(blobs.read('k'))).toBe(kept)
    })

    test('has one writer at a time under a key, and reads nothing of another', async () => {
      const blobs = open()
      let end: () => void = () => undefined
      async function* slow(): AsyncGenerator<Uint8Array, void> {
        yield new Uint8Array(3)
        await new Promise<void>((resolve) => (end = resolve))
      }
      const first = blobs.put('k', slow(), { most })
      let asked = 0
      async function* second(): AsyncGenerator<Uint8Array, void> {
        asked++
        yield new Uint8Array(3)
      }
      await expect(blobs.put('k', second(), { most })).rejects.toMatchObject({ code: 'conflict' })
      expect(asked).toBe(0)
      await expect.poll(() => (end(), blobs.size('k'))).toBe(3)
      expect(await first).toBe(3)
    })

    test('has room for the next writer when one has broken off', async () => {
      const blobs = open()
      // oxlint-disable-next-line require-yield
      async function* broken(): AsyncGenerator<Uint8Array, void> {
        throw new Error('gone')
      }
      await expect(blobs.put('k', broken(), { most })).rejects.toThrow('gone')
      expect(await blobs.put('k', pieces('x'), { most })).toBe(1)
    })

    test('stops at the first byte too many, and keeps nothing', async () => {
      const blobs = open()
      let asked = 0
      async function* endless(): AsyncGenerator<Uint8Array, void> {
        for (;;) {
          asked++
          yield new Uint8Array(600)
        }
      }
      await expect(blobs.put('k', endless(), { most })).rejects.toMatchObject({ code: 'too_large' })
      expect(asked).toBe(2)
      expect(await blobs.size('k')).toBeUndefined()
      expect(await blobs.put('k', pieces('fits'), { most: 4 })).toBe(4)
    })

    test('keeps nothing of a body that breaks off', async () => {
      const blobs = open()
      async function* broken(): AsyncGenerator<Uint8Array, void> {
        yield new Uint8Array(10)
        throw new Error('the client has gone')
      }
      await expect(blobs.put('k', broken(), { most })).rejects.toThrow('the client has gone')
      expect(await blobs.size('k')).toBeUndefined()
    })

    test('deletes', async () => {
      const blobs = open()
      await blobs.put('k', pieces('x'), { most })
      await blobs.delete('k')
      expect(await blobs.size('k')).toBeUndefined()
    })

    test('sweeps what is old, and nothing else', async () => {
      const blobs = open()
      await blobs.put('k', pieces('x'), { most })
      await blobs.sweep(Date.now() - 60_000)
      expect(await blobs.size('k')).toBe(1)
      await blobs.sweep(Date.now() + 60_000)
      expect(await blobs.size('k')).toBeUndefined()
    })

    test('takes any key', async () => {
      const blobs = open()
      const keys = ['../../up', '/etc/passwd', 'a/b', 'A/B', '.', '..', 'nul\0', 'x'.repeat(5000), 'é']
      for (const key of keys) await blobs.put(key, pieces(key), { most: 10_000 })
      for (const key of keys) expect(await textOf(blobs.read(key))).toBe(key)
    })
  })
}
