import { fstatSync } from 'node:fs'
import { setTimeout as after } from 'node:timers/promises'
import { attachment, type Attachment } from './files.ts'

/** How long to wait for the first byte: a program that starts this one may leave its standard input open and never write. */
const FIRST_MS = 3_000
const LARGEST = 4 * 1024 * 1024

/** What was piped in, for a message. Undefined if there is nothing. */
export async function piped(stdin: NodeJS.ReadStream, note: (text: string) => void): Promise<Attachment | undefined> {
  if (stdin.isTTY || !isPiped()) return undefined
  const chunks: Buffer[] = []
  let size = 0
  const bytes = stdin[Symbol.asyncIterator]() as AsyncIterator<Buffer>
  const silent = new AbortController()
  for (let first = true; ; first = false) {
    const next = bytes.next()
    const read = await (first ? Promise.race([next, after(FIRST_MS, 'silent' as const, { signal: silent.signal })]) : next)
    if (read === 'silent') {
      note('(nothing came on standard input; going on without it)')
      stdin.unref()
      return undefined
    }
    if (first) silent.abort()
    if (read.done) break
    chunks.push(read.value)
    size += read.value.length
    // `attachment` says that this is too much.
    if (size > LARGEST) break
  }
  return size === 0 ? undefined : attachment('standard input', Buffer.concat(chunks))
}

/** False for `/dev/null` and the like. */
function isPiped(): boolean {
  try {
    const stats = fstatSync(0)
    return stats.isFIFO() || stats.isFile() || stats.isSocket()
  } catch {
    return false
  }
}
