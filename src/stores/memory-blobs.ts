import type { Blobs } from '../core/ports/blobs.ts'
import { joinedBytes } from '../protocol/bytes.ts'
import { UampError } from '../protocol/errors.ts'

/** Most bytes of all blobs together. Beyond it a new one is refused. */
const MOST = 256 * 1024 * 1024

export interface MemoryBlobsOptions {
  readonly now?: () => number
  readonly mostBytes?: number
}

/** For tests, and for servers without a disk. */
export function memoryBlobs({ now = Date.now, mostBytes = MOST }: MemoryBlobsOptions = {}): Blobs {
  const blobs = new Map<string, { readonly bytes: Uint8Array; readonly at: number }>()
  const writing = new Set<string>()
  let held = 0

  function drop(key: string): void {
    held -= blobs.get(key)?.bytes.length ?? 0
    blobs.delete(key)
  }

  return {
    async put(key, body, { most }) {
      if (blobs.has(key) || writing.has(key)) throw taken()
      writing.add(key)
      const pieces: Uint8Array[] = []
      let size = 0
      try {
        for await (const piece of body) {
          size += piece.length
          held += piece.length
          if (size > most) throw new UampError('too_large', `At most ${most} bytes are allowed`, { details: { limit: most } })
          if (held > mostBytes) throw new UampError('overloaded', 'There is no room for more', { details: { retry_after: 60 } })
          pieces.push(piece)
        }
      } catch (error) {
        held -= size
        throw error
      } finally {
        writing.delete(key)
      }
      blobs.set(key, { bytes: joinedBytes(pieces), at: now() })
      return size
    },
    size: async (key) => blobs.get(key)?.bytes.length,
    async *read(key, range) {
      const blob = blobs.get(key)
      if (!blob) throw new UampError('not_found', 'Nothing is stored here')
      yield blob.bytes.slice(range?.start, range?.end)
    },
    delete: async (key) => drop(key),
    async sweep(before) {
      for (const [key, { at }] of blobs) if (at < before) drop(key)
    },
  }
}

function taken(): UampError {
  return new UampError('conflict', 'Something is already stored here')
}
