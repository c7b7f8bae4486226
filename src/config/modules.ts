import { existsSync, readFileSync } from 'node:fs'
import { register } from 'node:module'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { UampError } from '../protocol/errors.ts'
import { fileVersion } from './file-version.ts'
import { Imports } from './imports.ts'
import { shown } from './shown.ts'

export interface ModulesOptions {
  /** Also follow what the files import: a module then has changed if one of these has. Code in packages is left alone. */
  readonly watch?: boolean
}

interface Loaded {
  readonly href: string
  /** The file, and, if they are watched, those that it imports: what they were when they were read. */
  readonly versions: ReadonlyMap<string, string>
}

/** Loads JavaScript and TypeScript files, and loads a file again once it has changed. */
export class Modules {
  /** How each file was loaded last. */
  readonly #loaded = new Map<string, Loaded>()
  /** What each file was when it was last read. */
  readonly #versions = new Map<string, string>()
  readonly #imports: Imports | undefined
  #recent = new Set<string>()
  #reloads = 0

  constructor({ watch = false }: ModulesOptions = {}) {
    this.#imports = watch ? new Imports(this.#versions) : undefined
  }

  /** Tells apart what was loaded from what is loaded once the file, or, if they are watched, one of those that it imports, has changed. */
  print(file: string): string {
    return [...(this.#loaded.get(file)?.versions ?? [])].flat().join('\n')
  }

  /** The file, and, if they are watched, those that it imports. */
  filesOf(file: string): readonly string[] {
    return this.#imports?.from(file) ?? [file]
  }

  /** What a file was when it was last read. */
  versionOf(file: string): string {
    this.#imports?.read()
    return this.#versions.get(file) ?? fileVersion(file)
  }

  /** Call it before a file is read that is no module, or one that is not there. */
  note(file: string, version = fileVersion(file)): void {
    this.#recent.add(file)
    this.#versions.set(file, version)
  }

  /** The files that were read, or looked for, since the last call. */
  takeRecent(): readonly string[] {
    const recent = this.#recent
    this.#recent = new Set()
    return [...recent]
  }

  /** What a file exports. The error for a file that cannot be loaded says how to fix it. */
  async load(path: string): Promise<Readonly<Record<string, unknown>>> {
    const file = resolve(path)
    if (!existsSync(file)) throw new UampError('not_found', `There is no file ${file}`)
    if (!/\.[mc]?js$|\.m?ts$/.test(file)) throw refusal(file, 'is neither JavaScript nor TypeScript: use .js, .mjs, .cjs, .ts or .mts')
    if (this.#imports || /\.m?ts$/.test(file)) stripTypes()
    const before = this.#loaded.get(file)
    const isFresh = before && [...before.versions].every(([each, version]) => fileVersion(each) === version)
    const href = isFresh ? before.href : this.#nextHref(file)
    // Before it is read: a change in the meantime then shows.
    this.note(file, isFresh ? before.versions.get(file) : undefined)
    try {
      return (await import(href)) as Record<string, unknown>
    } catch (thrown) {
      throw await explained(thrown, { file, href, files: this.filesOf(file) })
    } finally {
      // Only now it is known what the file imports.
      const versions = isFresh ? before.versions : new Map(this.filesOf(file).map((each) => [each, this.versionOf(each)]))
      this.#loaded.set(file, { href, versions })
    }
  }

  /**
   * Node keeps a loaded module for ever, so a changed file needs another URL. The first load has the plain one, which importers share; but
   * once something has changed, that one may stand for old code.
   */
  #nextHref(file: string): string {
    const { href } = pathToFileURL(file)
    const isFirst = !this.#loaded.has(file) && (this.#reloads === 0 || !this.#imports)
    return isFirst ? href : `${href}?version=${++this.#reloads}`
  }
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

async function explained(thrown: unknown, { file, href, files }: Failed): Promise<UampError> {
  const { name, message, code, stack = '' } = (thrown instanceof Error ? thrown : { message: String(thrown) }) as NodeJS.ErrnoException
  if (code === 'ERR_MODULE_NOT_FOUND') {
    return refusal(file, `imports something that does not exist: ${message}. ${missing(message)}`, thrown)
  }
  const next = `Correct it; \`npx uamp doctor ${shown(file)}\` checks it again`
  if (name === 'SyntaxError') {
    const place = placeIn(stack) || (await mistakeIn(files))
    const lines = [`does not parse: ${message.trim()}`, place, advice(message), next]
    return refusal(file, lines.filter((line) => line !== '').join('\n'), thrown)
  }
  // Node names a CommonJS module by its path, and any other by its URL.
  const at = stack.split('\n').find((line) => line.includes(href) || line.includes(`${file}:`))
  const place = at === undefined ? '' : ` (${at.trim().replace(/^at (.* \()?(file:\/\/)?|\)$/g, '')})`
  return refusal(file, `failed while it loaded: ${message}${place}. ${next}, and UAMP_DEBUG=1 shows all of it`, thrown)
}

interface Failed {
  readonly file: string
  readonly href: string
  /** The file, and those that it imports, if they are known. */
  readonly files: readonly string[]
}

/** What to do about an import that fails, by Node's own words. */
function missing(message: string): string {
  const [, name] = /^Cannot find package '((?:@[^/']+\/)?[^/']+)/.exec(message) ?? []
  if (name !== undefined) return `Install it: \`npm install ${name}\``
  const isWhole = /^Cannot find module '[^']+\.[mc]?[jt]s'/.test(message)
  return isWhole ? 'Check the name and the folder of that file' : "Give the file its extension, as in './tools.ts', and check its path"
}

/** Node puts the file, the line and an excerpt of TypeScript before the error's name. */
function placeIn(stack: string): string {
  return stack.slice(0, Math.max(0, stack.indexOf('SyntaxError'))).trim()
}

/** Node does not say where the mistake in a JavaScript file is, but the parser of types does. */
async function mistakeIn(files: readonly string[]): Promise<string> {
  const scripts = files.filter((file) => /\.[mc]?js$/.test(file))
  const { transformSync } = await import('@swc/wasm-typescript')
  for (const file of scripts) {
    try {
      transformSync(readFileSync(file, 'utf8'), { mode: 'strip-only', module: true, filename: file })
    } catch (thrown) {
      const { startLine, snippet } = thrown as { readonly startLine?: number; readonly snippet?: string }
      if (startLine !== undefined) return `${file}:${startLine}\n${snippet ?? ''}`.trim()
    }
  }
  return scripts[0] === undefined ? '' : `\`node ${shown(scripts[0])}\` shows the line`
}

function advice(message: string): string {
  if (/strip-only/.test(message)) return 'Types are erased, not compiled: no enum, namespace or parameter property'
  // A package.json of `npm init` may say that .js files are CommonJS.
  const isCommonJs = /outside a module|^Unexpected token 'export'/.test(message)
  return isCommonJs ? 'Run `npm pkg set type=module` in its folder, or end its name in .mjs' : ''
}

function refusal(file: string, problem: string, cause?: unknown): UampError {
  return new UampError('invalid_request', `${file} ${problem}`, { cause })
}
