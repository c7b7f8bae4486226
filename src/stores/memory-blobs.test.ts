import { expect, test } from 'vitest'
import { blobsContract } from '../../test/contract/blobs.ts'
import { memoryBlobs } from './memory-blobs.ts'

blobsContract('memory', () => memoryBlobs())

test('refuses what there is no room for, and has room again when something went', async () => {
  const blobs = memoryBlobs({ mostBytes: 10 })
  async function* bytes(size: number): AsyncGenerator<Uint8Array, void> {
    yield new Uint8Array(size)
  }
  await blobs.put('a', bytes(6), { most: 10 })
  await expect(blobs.put('b', bytes(6), { most: 10 })).rejects.toMatchObject({ code: 'overloaded' })
  await blobs.delete('a')
  expect(await blobs.put('b', bytes(6), { most: 10 })).toBe(6)
})
