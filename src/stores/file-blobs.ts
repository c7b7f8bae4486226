import { createHash, randomUUID } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { link, mkdir, open, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Blobs } from '../core/ports/blobs.ts'
import { UampError } from '../protocol/errors.ts'

/** Keeps each blob in a file of one folder, which is created when it is first needed. */
export function fileBlobs({ path: folder }: { readonly path: string }): Blobs {
  /** Hashed, so that no key can name a file outside the folder. */
  const fileOf = (key: string): string => join(folder, createHash('sha256').update(key).digest('hex'))
  /** Keys that are being written: refuses a second writer at once, before many writers of one key fill the disk. */
  const writing = new Set<string>()

  async function put(file: string, body: AsyncIterable<Uint8Array>, most: number): Promise<number> {
    await mkdir(folder, { recursive: true, mode: 0o700 })
    if (await statOf(file)) throw taken()
    const draft = join(folder, `${randomUUID()}.part`)
    try {
      const size = await write(draft, body, most)
      // Not `rename`, which would replace an existing file.
      await link(draft, file).catch((error: NodeJS.ErrnoException) => {
        throw error.code === 'EEXIST' ? taken(error) : error
      })
      return size
    } finally {
      await rm(draft, { force: true })
    }
  }

  return {
    async put(key, body, { most }) {
      if (writing.has(key)) throw taken()
      writing.add(key)
      try {
        return await put(fileOf(key), body, most)
      } finally {
        writing.delete(key)
      }
    },
    async size(key) {
      return (await statOf(fileOf(key)))?.size
    },
    async *read(key, range) {
      if (range && range.end <= range.start) return
      yield* createReadStream(fileOf(key), range && { start: range.start, end: range.end - 1 }) as AsyncIterable<Uint8Array>
    },
    delete: (key) => rm(fileOf(key), { force: true }),
    async sweep(before) {
      for (const name of await readdir(folder).catch(absent(() => []))) {
        const file = join(folder, name)
        const found = await statOf(file)
        if (found && found.mtimeMs < before) await rm(file, { force: true })
      }
    },
  }
}

async function write(file: string, body: AsyncIterable<Uint8Array>, most: number): Promise<number> {
  const handle = await open(file, 'wx', 0o600)
  try {
    let size = 0
    for await (const piece of body) {
      size += piece.length
      if (size > most) throw new UampError('too_large', `At most ${most} bytes are allowed`, { details: { limit: most } })
      await handle.writeFile(piece)
    }
    await handle.sync()
    return size
  } finally {
    await handle.close()
  }
}

function taken(cause?: unknown): UampError {
  return new UampError('conflict', 'Something is already stored here', { cause })
}

function statOf(file: string) {
  return stat(file).catch(absent(() => undefined))
}

function absent<T>(instead: () => T): (error: NodeJS.ErrnoException) => T {
  return (error) => {
    if (error.code === 'ENOENT') return instead()
    throw error
  }
}
