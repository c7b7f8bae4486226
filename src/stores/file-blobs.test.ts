import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { blobsContract } from '../../test/contract/blobs.ts'
import { fileBlobs } from './file-blobs.ts'

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'uamp-blobs-'))
  onTestFinished(() => rmSync(path, { recursive: true }))
  return path
}

blobsContract('files', () => fileBlobs({ path: join(folder(), 'blobs') }))

test('leaves no half of a file behind, and nothing beside its folder', async () => {
  const path = folder()
  const blobs = fileBlobs({ path: join(path, 'blobs') })
  async function* broken(): AsyncGenerator<Uint8Array, void> {
    yield new Uint8Array(10)
    throw new Error('gone')
  }
  await expect(blobs.put('../../k', broken(), { most: 100 })).rejects.toThrow('gone')
  expect(readdirSync(path)).toEqual(['blobs'])
  expect(readdirSync(join(path, 'blobs'))).toEqual([])
})
