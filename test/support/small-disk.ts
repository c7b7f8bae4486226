import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'

const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))
/** A process with a mount table of its own, in which it may mount what others do not see. */
const APART = ['--map-root-user', '--mount', 'sh', '-c']

export interface SmallDisk {
  readonly url: string
  readonly process: ChildProcess
  readonly output: () => string
  /** Takes all the space that is left. */
  fill(): void
  /** Gives it back. */
  free(): void
}

/** Why there can be none here; undefined: there can. */
export function noSmallDisk(): string | undefined {
  const { status } = spawnSync('unshare', [...APART, 'mount -t tmpfs -o size=1m none /mnt'])
  return status === 0 ? undefined : 'no file system can be mounted here (unshare --map-root-user --mount)'
}

/** The built server with its data on a file system of a few megabytes. */
export async function onSmallDisk(size = '4m'): Promise<SmallDisk> {
  const folder = mkdtempSync(join(tmpdir(), 'uamp-small-'))
  const script = `mount -t tmpfs -o size=${size} none "$0" && exec "$1" "$2" serve --port 0 --data "$0/data"`
  const child = spawn('unshare', [...APART, script, folder, process.execPath, MAIN], { stdio: ['ignore', 'pipe', 'pipe'] })
  const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await gone
    rmSync(folder, { recursive: true })
  })
  let output = ''
  const url = await new Promise<string>((resolve, reject) => {
    const read = (chunk: Buffer): void => {
      output += chunk.toString()
      const found = / at (http:\/\/\S+)[^]*npx uamp chat/.exec(output)?.[1]
      if (found !== undefined) resolve(found)
    }
    child.stdout.on('data', read)
    child.stderr.on('data', read)
    void gone.then(() => reject(new Error(`the server ended: ${output}`)))
  })
  // Seen from outside, the server's mount is below its own root.
  const filler = join('/proc', String(child.pid), 'root', folder, 'filler')
  return {
    url,
    process: child,
    output: () => output,
    fill() {
      const file = openSync(filler, 'a')
      // In ever smaller pieces, until not a byte fits.
      for (let piece = 1024 * 1024; piece >= 1;) {
        try {
          if (writeSync(file, new Uint8Array(piece)) < piece) piece = Math.floor(piece / 2)
        } catch {
          piece = Math.floor(piece / 2)
        }
      }
      closeSync(file)
    },
    free: () => rmSync(filler),
  }
}
