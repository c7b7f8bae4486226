import { constants } from 'node:fs'
import { lstat, mkdir, open, realpath, type FileHandle } from 'node:fs/promises'
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from 'node:path'
import * as z from 'zod/mini'
import { RPC, RpcError } from '../../wire/json-rpc.ts'

/** Bytes of a file that may be read or written. */
const FILE = 16 * 1024 * 1024

/** ACP, File System: lines are counted from 1. */
export const Read = z.object({ sessionId: z.string(), path: z.string(), line: z.nullish(z.number()), limit: z.nullish(z.number()) })
export const Write = z.object({ sessionId: z.string(), path: z.string(), content: z.string() })

/**
 * The one folder of an agent's files. Links are followed before a path is checked, so that no link leads out. This bounds what we do
 * for the agent; only the operating system bounds what its own process does.
 */
export class Folder {
  /** Its path without links. */
  readonly root: string

  constructor(root: string) {
    this.root = root
  }

  async read({ path, line, limit }: z.infer<typeof Read>): Promise<string> {
    const file = await openFile(await this.find(path), { flags: constants.O_RDONLY, asked: path })
    try {
      if ((await file.stat()).size > FILE) throw refused(`${path} is larger than ${FILE} bytes`)
      const text = await file.readFile('utf8')
      if (line == null && limit == null) return text
      const from = Math.max(0, (line ?? 1) - 1)
      return text
        .split('\n')
        .slice(from, limit == null ? undefined : from + Math.max(0, limit))
        .join('\n')
    } finally {
      await file.close()
    }
  }

  async write({ path, content }: z.infer<typeof Write>): Promise<void> {
    if (Buffer.byteLength(content) > FILE) throw refused(`A file may have at most ${FILE} bytes`)
    const target = await this.#target(absolute(path), path)
    const file = await openFile(target, { flags: constants.O_WRONLY | constants.O_CREAT, asked: path })
    try {
      await file.truncate()
      await file.writeFile(content)
    } finally {
      await file.close()
    }
  }

  /** Where a path leads, with every link followed. `asked`: the path as errors name it. */
  async find(path: string, asked = path): Promise<string> {
    const real = await realpath(absolute(path)).catch(() => {
      throw new RpcError(-32002, `There is no file ${asked}`)
    })
    if (real === this.root || real.startsWith(this.root.endsWith(sep) ? this.root : this.root + sep)) return real
    throw refused(`${asked} is outside of the folder that this agent may use`)
  }

  /** A path in here, relative to here, wherever links lead: for an editor that has the same files. `undefined`: it is not in here. */
  inside(path: string): string | undefined {
    if (!isAbsolute(path)) return undefined
    const inside = relative(this.root, resolve(path))
    return inside === '..' || inside.startsWith(`..${sep}`) || isAbsolute(inside) ? undefined : inside
  }

  /** The path of a file to write. Creates its folder if necessary. */
  async #target(path: string, asked: string): Promise<string> {
    // A dangling link counts as present: its target could appear anywhere.
    if (await isThere(path)) return this.find(path, asked)
    let there = dirname(path)
    const rest: string[] = []
    for (; !(await isThere(there)); there = dirname(there)) rest.unshift(basename(there))
    const folder = join(await this.find(there, asked), ...rest)
    if (rest.length > 0) await mkdir(folder, { recursive: true })
    return join(folder, basename(path))
  }
}

/** Does not follow a link that appeared since the check, and does not wait for the other end of a pipe. */
async function openFile(path: string, { flags, asked }: { readonly flags: number; readonly asked: string }): Promise<FileHandle> {
  const file = await open(path, flags | constants.O_NOFOLLOW | constants.O_NONBLOCK, 0o644).catch((error: NodeJS.ErrnoException) => {
    throw error.code === 'ENXIO' ? refused(`${asked} is not a file`) : error
  })
  if ((await file.stat()).isFile()) return file
  await file.close()
  throw refused(`${asked} is not a file`)
}

async function isThere(path: string): Promise<boolean> {
  return (await lstat(path).catch(() => undefined)) !== undefined
}

function absolute(path: string): string {
  if (!isAbsolute(path)) throw refused(`${path} is not an absolute path`)
  return resolve(path)
}

export function refused(why: string): RpcError {
  return new RpcError(RPC.invalidParams, why)
}
