import { stripVTControlCharacters } from 'node:util'
import { fileURLToPath } from 'node:url'
import { Cli, type RunOptions } from './run.ts'

const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))

export interface TerminalOptions extends Omit<RunOptions, 'input'> {
  readonly columns?: number
  readonly rows?: number
}

/** Keys, as terminals send them. */
export const KEY = {
  enter: '\r',
  up: '\u001B[A',
  down: '\u001B[B',
  alt: '\u001B',
  ctrl: (key: string) => String.fromCharCode(key.charCodeAt(0) - 96),
}

export function pasted(text: string): string {
  return `\u001B[200~${text.replaceAll('\n', '\r')}\u001B[201~`
}

/** The CLI on a pseudo-terminal, which `script` of util-linux opens. */
export class Terminal extends Cli {
  #from = 0

  constructor(args: readonly string[], { columns = 80, rows = 30, program = [process.execPath, MAIN], ...options }: TerminalOptions = {}) {
    const command = [...program, ...args].map((word) => `'${word.replaceAll("'", String.raw`'\''`)}'`).join(' ')
    const line = `stty cols ${columns} rows ${rows}; exec ${command}`
    const env = { TERM: 'xterm-256color', SHELL: '/bin/sh', ...options.env }
    super([], { ...options, env, program: ['script', '-qec', line, '/dev/null'] })
  }

  /** What is on it since `clear`, without colours and moves of the cursor. */
  override get output(): string {
    return stripVTControlCharacters(this.stdout.slice(this.#from)).replaceAll('\r\n', '\n')
  }

  /** With colours. */
  get painted(): string {
    return this.stdout.slice(this.#from)
  }

  clear(): void {
    this.#from = this.stdout.length
  }

  /** Waits for the prompt after something like this. */
  async answers(pattern: RegExp): Promise<void> {
    await this.prints(new RegExp(`(?:${pattern.source})(?:[^]*\\n|(?<=\\n))> `, pattern.flags))
  }

  /** Enters a line, and waits for the prompt after something like this. */
  async says(line: string, pattern: RegExp): Promise<void> {
    this.clear()
    this.write(`${line}${KEY.enter}`)
    await this.answers(pattern)
  }
}
