import { existsSync, readFileSync, statSync } from 'node:fs'
import { register } from 'node:module'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { UampError } from '../protocol/errors.ts'
import { Imports } from './imports.ts'

export interface ModulesOptions {
  /** Also follow what the files import: a module then has changed if one of these has. Code in packages is left alone. */
  readonly watch?: boolean
}

/** Loads JavaScript and TypeScript files, and loads a file again once it has changed. */
export class Modules {
  /** How each file was loaded last. */
  readonly #loaded = new Map<string, { readonly version: string; readonly href: string }>()
  readonly #imports: Imports | undefined
  #reloads = 0

  constructor({ watch = false }: ModulesOptions = {}) {
    this.#imports = watch ? new Imports() : undefined
  }

  /** Changes whenever the file does, or, if they are watched, one of those that it imports. */
  version(file: string): string {
    return this.filesOf(file).map(versionOf).join('\n')
  }

  /** The file, and, if they are watched, those that it imports. */
  filesOf(file: string): readonly string[] {
    return this.#imports?.from(file) ?? [file]
  }

  /** What a file exports. The error for a file that cannot be loaded says how to fix it. */
  async load(path: string): Promise<Readonly<Record<string, unknown>>> {
    const file = resolve(path)
    if (!existsSync(file)) throw new UampError('not_found', `There is no file ${file}`)
    if (!/\.[mc]?js$|\.m?ts$/.test(file)) throw refusal(file, 'is neither JavaScript nor TypeScript: use .js, .mjs, .cjs, .ts or .mts')
    if (this.#imports || /\.m?ts$/.test(file)) stripTypes()
    const before = this.#loaded.get(file)
    const version = this.version(file)
    const { href } = pathToFileURL(file)
    // Node keeps a loaded module for ever, so a changed file needs another URL. The first load has the plain one, which importers share.
    const again = before?.version === version ? before.href : `${href}?version=${++this.#reloads}`
    const from = before ? again : href
    this.#loaded.set(file, { version, href: from })
    try {
      return (await import(from)) as Record<string, unknown>
    } catch (thrown) {
      throw await explained(thrown, file, this.filesOf(file))
    } finally {
      // Only now it is known what the file imports.
      this.#loaded.set(file, { version: this.version(file), href: from })
    }
  }
}

function versionOf(file: string): string {
  const { mtimeMs = 0, size = 0 } = statSync(file, { throwIfNoEntry: false }) ?? {}
  return `${file} ${mtimeMs} ${size}`
}

/** Once per process: hooks add up, and Node cannot remove one. */
let stripping = false

function stripTypes(): void {
  // False or absent where Node does not strip types itself.
  const { typescript } = process.features as { readonly typescript?: string | false }
  if (stripping || typescript) return
  stripping = true
  register('../config/strip-types.js', import.meta.url)
}

async function explained(thrown: unknown, file: string, files: readonly string[]): Promise<UampError> {
  const { name, message, code, stack = '' } = thrown as Error & { readonly code?: string }
  if (code === 'ERR_MODULE_NOT_FOUND') {
    return refusal(
      file,
      `imports something that does not exist: ${message}. Install the package, or give the file its extension, as in './tools.ts'`,
      thrown,
    )
  }
  if (name === 'SyntaxError') {
    const where = place(stack) || (await mistakeIn(files))
    const lines = [`does not parse: ${message.trim()}`, where, advice(file, message, where)]
    return refusal(file, lines.filter((line) => line !== '').join('\n'), thrown)
  }
  return refusal(file, `failed while it loaded: ${message}`, thrown)
}

/** The first mistake in these files, as `file:line`: Node does not tell the line of JavaScript that does not parse. */
async function mistakeIn(files: readonly string[]): Promise<string> {
  const { transformSync } = await import('@swc/wasm-typescript')
  for (const file of files) {
    try {
      transformSync(readFileSync(file, 'utf8'), { mode: 'strip-only', module: true, filename: file })
    } catch (thrown) {
      const { message, snippet, startLine } = thrown as {
        readonly message?: string
        readonly snippet?: string
        readonly startLine?: number
      }
      if (startLine !== undefined) return `${file}:${startLine}: ${message ?? ''}\n${snippet ?? ''}`.trim()
    }
  }
  return ''
}

/** Node puts the file, the line and an excerpt of TypeScript before the error's name. */
function place(stack: string): string {
  return stack.slice(0, Math.max(0, stack.indexOf('SyntaxError'))).trim()
}

function advice(file: string, message: string, where: string): string {
  if (/strip-only/.test(message)) return 'Types are erased, not compiled: no enum, namespace or parameter property'
  return where !== '' || file.endsWith('ts') ? '' : `\`node ${file}\` shows the line`
}

function refusal(file: string, problem: string, cause?: unknown): UampError {
  return new UampError('invalid_request', `${file} ${problem}`, { cause })
}
