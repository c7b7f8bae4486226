import { constants } from 'node:fs'
import { lstat, mkdir, open, realpath } from 'node:fs/promises'
import { basename, dirname, isAbsolute, join, resolve, sep } from 'node:path'
import { RPC, RpcError } from '../../wire/json-rpc.ts'

/** Bytes of a file that is read or written. */
const FILE = 16 * 1024 * 1024

/**
 * The one folder that an agent's files are in. Links are followed before it is decided where a path leads, so that none leads out.
 * It bounds what is done for the agent here; what its own process does is bounded by the system alone.
 */
export class Folder {
  readonly #path: string
  #root: Promise<string> | undefined

  constructor(path: string) {
    this.#path = path
  }

  /** Where it really is. */
  root(): Promise<string> {
    return (this.#root ??= realpath(this.#path))
  }

  /** ACP, File System: lines are counted from 1. */
  async read(
    path: string,
    { line, limit }: { readonly line?: number | null | undefined; readonly limit?: number | null | undefined } = {},
  ): Promise<string> {
    const real = await this.#inside(await realpath(absolute(path)).catch(() => notFound(path)), path)
    // Not following a link that has come since, and not waiting for a pipe.
    const file = await open(real, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
    try {
      const stats = await file.stat()
      if (!stats.isFile()) throw new RpcError(RPC.invalidParams, `${path} is not a file`)
      if (stats.size > FILE) throw new RpcError(RPC.invalidParams, `${path} is larger than ${FILE} bytes`)
      const text = await file.readFile('utf8')
      if (!line && !limit) return text
      const from = Math.max(0, (line ?? 1) - 1)
      return text
        .split('\n')
        .slice(from, limit ? from + limit : undefined)
        .join('\n')
    } finally {
      await file.close()
    }
  }

  async write(path: string, content: string): Promise<void> {
    if (Buffer.byteLength(content) > FILE) throw new RpcError(RPC.invalidParams, `More than ${FILE} bytes are not written`)
    const target = await this.#target(absolute(path), path)
    const file = await open(target, constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_NOFOLLOW, 0o644)
    try {
      await file.writeFile(content)
    } finally {
      await file.close()
    }
  }

  /** A folder that something may run in. */
  async within(path: string | null | undefined): Promise<string> {
    if (!path) return this.root()
    return this.#inside(await realpath(absolute(path)).catch(() => notFound(path)), path)
  }

  /** Where a file will be: its folder is made if need be, and is inside with every link followed. */
  async #target(path: string, asked: string): Promise<string> {
    const found = await lstat(path).catch(() => undefined)
    // A link that leads nowhere could be made to lead anywhere.
    if (found) return this.#inside(await realpath(path).catch(() => notFound(asked)), asked)
    const parent = dirname(path)
    const rest: string[] = []
    let there = parent
    while (!(await lstat(there).catch(() => undefined))) {
      rest.unshift(basename(there))
      there = dirname(there)
    }
    const real = await this.#inside(await realpath(there).catch(() => notFound(asked)), asked)
    const folder = join(real, ...rest)
    if (rest.length > 0) await mkdir(folder, { recursive: true })
    return join(folder, basename(path))
  }

  async #inside(real: string, asked: string): Promise<string> {
    const root = await this.root()
    if (real === root || real.startsWith(root.endsWith(sep) ? root : root + sep)) return real
    throw new RpcError(RPC.invalidParams, `${asked} is outside of the folder that this agent may use`)
  }
}

function absolute(path: string): string {
  if (!isAbsolute(path)) throw new RpcError(RPC.invalidParams, `${path} is not an absolute path`)
  return resolve(path)
}

function notFound(path: string): never {
  throw new RpcError(-32002, `There is no file ${path}`)
}
