import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

export const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** Where Node leaves TypeScript alone, what `uamp serve` uses makes it run. */
const TYPESCRIPT =
  'typescript' in process.features && process.features.typescript
    ? []
    : [
        '--import',
        `data:text/javascript,import{register}from'node:module';register('${new URL('../../dist/config/strip-types.js', import.meta.url).href}')`,
      ]

export interface ChildOptions {
  readonly cwd: string
  readonly env?: Readonly<Record<string, string>>
}

/** A program of its own, with all that it prints. */
export class Child {
  output = ''
  /** Its exit code; undefined when a signal ended it. */
  readonly exit: Promise<number | undefined>
  readonly #process: ReturnType<typeof spawn>
  #wake: () => void = () => undefined
  #over = false

  constructor(command: string, args: readonly string[], { cwd, env = {} }: ChildOptions) {
    this.#process = spawn(command, args, { cwd, env: { ...process.env, UAMP_DATA: 'memory', ...env }, stdio: ['ignore', 'pipe', 'pipe'] })
    const add = (text: string): void => {
      this.output += text
      this.#wake()
    }
    this.#process.stdout?.setEncoding('utf8').on('data', add)
    this.#process.stderr?.setEncoding('utf8').on('data', add)
    this.exit = new Promise((resolve) => {
      this.#process.once('error', (error) => add(String(error)))
      this.#process.once('close', (code) => {
        this.#over = true
        resolve(code ?? undefined)
        this.#wake()
      })
    })
  }

  static node(file: string, options: ChildOptions & { readonly args?: readonly string[] }): Child {
    return new Child(process.execPath, [...(file.endsWith('.ts') ? TYPESCRIPT : []), file, ...(options.args ?? [])], options)
  }

  get over(): boolean {
    return this.#over
  }

  /** Waits until it has printed what fits, and gives that. Throws with all it printed when it ends before. */
  async printed(wanted: RegExp): Promise<RegExpExecArray> {
    for (;;) {
      const found = wanted.exec(this.output)
      if (found) return found
      if (this.#over) throw new Error(`It ended without printing ${wanted}:\n${this.output}`)
      await new Promise<void>((resolve) => (this.#wake = resolve))
    }
  }

  async stop(): Promise<void> {
    this.#process.kill('SIGKILL')
    await this.exit
  }
}
