import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isLong } from '../support/trials.ts'

export const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const INTEROP = join(ROOT, 'test/interop/node_modules')
const RUNTIMES = join(ROOT, 'test/runtimes/node_modules')

/** Versions of Node with their programs. */
export const NODES: Readonly<Record<string, string>> = {
  '20.19.6': join(RUNTIMES, 'node20/bin/node'),
  '22.23.3': join(RUNTIMES, 'node22/bin/node'),
  '24.21.0': join(RUNTIMES, 'node24/bin/node'),
}
/** They are installed for the long trials only: each is as large as all of our packages together. */
export const hasNodes = isLong && process.platform === 'linux' && process.arch === 'x64'
export const DENO = join(RUNTIMES, '@deno/linux-x64-glibc/deno')

export interface Ran {
  readonly code: number | null
  readonly output: string
}

export interface RunOptions {
  readonly cwd: string
  readonly env?: Readonly<Record<string, string>>
}

export async function run(command: readonly string[], { cwd, env = {} }: RunOptions): Promise<Ran> {
  const [program = '', ...args] = command
  const child = spawn(program, args, { cwd, env: { ...process.env, UAMP_DATA: 'memory', ...env }, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text: string) => void (output += text))
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, output }
}

async function npm(args: readonly string[], cwd = ROOT): Promise<void> {
  const { code, output } = await run(['npm', ...args, '--no-audit', '--no-fund'], { cwd })
  if (code !== 0) throw new Error(`npm ${args.join(' ')} ended with ${code}:\n${output}`)
}

/** Both packages as they are published, and a folder with both installed. */
export class Fresh {
  readonly folder = mkdtempSync(join(tmpdir(), 'uamp-fresh-'))
  readonly #packed = join(this.folder, 'packed')

  get uamp(): string {
    return `file:${this.#tarball(/^uamp-\d/)}`
  }

  get creator(): string {
    return this.#tarball(/^create-uamp-\d/)
  }

  async pack(): Promise<void> {
    mkdirSync(this.#packed)
    // Without its scripts: they would build anew what other tests are running.
    await npm(['pack', '--ignore-scripts', '--pack-destination', this.#packed])
    await npm(['pack', '--pack-destination', this.#packed], join(ROOT, 'create-uamp'))
    // With the folder by name: npm would else install into whichever folder above has a node_modules.
    await npm(['install', '--prefix', this.folder, '--prefer-offline', this.uamp, this.creator], this.folder)
    this.link('tsx', join(INTEROP, 'tsx'))
    for (const name of ['typescript', '@types/node']) this.link(name, join(ROOT, 'node_modules', name))
  }

  /** A project that `create-uamp` made. It finds the packages in the folder above. */
  async create(name: string, ...flags: readonly string[]): Promise<string> {
    const main = join(this.folder, 'node_modules/create-uamp/index.js')
    const { code, output } = await run([process.execPath, main, name, ...flags], { cwd: this.folder, env: { UAMP_VERSION: this.uamp } })
    if (code !== 0) throw new Error(output)
    return join(this.folder, name)
  }

  close(): void {
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 5 })
  }

  /** What a project asks for beside ours is not fetched again, in whichever version is the newest today. */
  private link(name: string, from: string): void {
    const to = join(this.folder, 'node_modules', name)
    mkdirSync(dirname(to), { recursive: true })
    symlinkSync(from, to, 'junction')
  }

  #tarball(name: RegExp): string {
    return join(this.#packed, readdirSync(this.#packed).find((file) => name.test(file)) ?? '')
  }
}
