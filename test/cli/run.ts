import { spawn, type ChildProcessByStdio } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const MAIN = join(ROOT, 'dist/cli/main.js')

export interface RunOptions {
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string>>
  /** Written to standard input, which is then closed. Without it, standard input stays open. */
  readonly input?: string
  /** What is run instead of the built CLI. What it starts itself is ended with it. */
  readonly program?: readonly [command: string, ...args: string[]]
}

/** The CLI as users have it: built, and a process of its own. */
export class Cli {
  stdout = ''
  stderr = ''
  readonly #child: ChildProcessByStdio<Writable, Readable, Readable>
  readonly #exited: Promise<number | null>
  readonly #group: boolean
  #changed: () => void = () => undefined

  constructor(args: readonly string[], { cwd = tmpdir(), env = {}, input, program }: RunOptions = {}) {
    if (!existsSync(MAIN)) throw new Error('There is no dist: run `npm run build`, or test with `npm test`')
    const [command, ...first] = program ?? [process.execPath, MAIN]
    this.#group = program !== undefined
    this.#child = spawn(command, [...first, ...args], { cwd, env: { ...inherited(), ...env }, stdio: 'pipe', detached: this.#group })
    this.#child.stdout.setEncoding('utf8').on('data', (text: string) => this.#add('stdout', text))
    this.#child.stderr.setEncoding('utf8').on('data', (text: string) => this.#add('stderr', text))
    // A process that has gone does not read.
    this.#child.stdin.on('error', () => undefined)
    if (input !== undefined) this.#child.stdin.end(input)
    this.#exited = once(this.#child, 'close').then(([code]) => {
      this.#changed()
      return code as number | null
    })
    onTestFinished(async () => {
      if (this.running) this.signal('SIGKILL')
      await this.#exited
    })
  }

  get running(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null
  }

  get output(): string {
    return this.stdout + this.stderr
  }

  get pid(): number {
    return this.#child.pid as number
  }

  write(text: string): void {
    this.#child.stdin.write(text)
  }

  /** Closes standard input. */
  end(): void {
    this.#child.stdin.end()
  }

  signal(name: NodeJS.Signals): void {
    if (this.#group) process.kill(-(this.#child.pid as number), name)
    else this.#child.kill(name)
  }

  /** Signals within half a second of each other count as one, so it takes more than one to be sure. */
  async signalUntilExit(name: NodeJS.Signals): Promise<number | null> {
    const again = setInterval(() => this.signal(name), 100)
    const code = await this.#exited
    clearInterval(again)
    return code
  }

  /** The exit code. */
  exit(): Promise<number | null> {
    return this.#exited
  }

  /** Waits until it has printed something like this. */
  async prints(pattern: RegExp): Promise<RegExpExecArray> {
    for (;;) {
      const match = pattern.exec(this.output)
      if (match) return match
      if (!this.running) throw new Error(`It exited without printing ${String(pattern)}:\n${this.output}`)
      await new Promise<void>((resolve) => (this.#changed = resolve))
    }
  }

  #add(stream: 'stdout' | 'stderr', text: string): void {
    this[stream] += text
    this.#changed()
  }
}

/**
 * What would change what is printed or served: colours, keys of models, the Ollama that may run on this machine, and what npm tells those
 * that it runs, by which another npm would take this folder for its own.
 */
const OTHERS =
  /^(UAMP_|(FORCE_COLOR|NO_COLOR|NODE_DISABLE_COLORS|CI)$|OLLAMA_HOST$|(OPENAI|ANTHROPIC|GEMINI|GOOGLE|FIREWORKS|DEEPSEEK)_|npm_(package_|lifecycle_|command$|config_(call|prefix|local_prefix)$))/

export function inherited(): Record<string, string | undefined> {
  return { ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !OTHERS.test(name))), OLLAMA_HOST: '127.0.0.1:1' }
}

/** A folder with these files, and with the package installed, for as long as the test runs. */
export async function project(files: Readonly<Record<string, string>> = {}): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'uamp-cli-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }))
  await mkdir(join(folder, 'node_modules'))
  await symlink(ROOT, join(folder, 'node_modules/uamp'), 'junction')
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, name)), { recursive: true })
    await writeFile(join(folder, name), text)
  }
  return folder
}

export interface Serving {
  readonly cli: Cli
  readonly url: string
}

/** `uamp serve` on a free port, once it is there. */
export async function serving(args: readonly string[] = [], options: RunOptions = {}): Promise<Serving> {
  const cli = new Cli(['serve', '--port', '0', ...args], { env: { UAMP_DATA: 'memory' }, ...options })
  const [, url = ''] = await cli.prints(/ at (https?:\/\/\S+)[^]*npx uamp chat/)
  return { cli, url }
}

/** Runs to its end. */
export async function finished(args: readonly string[], options: RunOptions = {}) {
  const cli = new Cli(args, { input: '', ...options })
  const code = await cli.exit()
  return { code, stdout: cli.stdout, stderr: cli.stderr }
}
