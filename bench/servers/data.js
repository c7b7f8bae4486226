// @ts-check
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/**
 * Where a server keeps its data: in memory, in a folder of its own that goes with it, or in one that outlives it.
 *
 * @param {string | undefined} store `memory` or `sqlite`
 * @param {string} [folder]
 */
export async function dataOf(store, folder) {
  if (store === 'memory') return { data: 'memory', remove: async () => undefined }
  if (folder !== undefined) return { data: folder, remove: async () => undefined }
  const own = await mkdtemp(join(tmpdir(), 'uamp-bench-'))
  return { data: own, remove: () => rm(own, { recursive: true, force: true, maxRetries: 5 }) }
}
