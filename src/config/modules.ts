import { existsSync, readFileSync, statSync } from 'node:fs'
import { register } from 'node:module'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { UampError } from '../protocol/errors.ts'
import { shown } from './shown.ts'

/** Loads JavaScript and TypeScript files, and loads a file again once it has changed. Modules that it imports stay as they are. */
export class Modules {
  readonly #first = new Map<string, string>()

  /** Changes whenever the file does. */
  version(file: string): string {
    const { mtimeMs = 0, size = 0 } = statSync(file, { throwIfNoEntry: false }) ?? {}
    return `${file} ${mtimeMs} ${size}`
  }

  /** What a file exports. The error for a file that cannot be loaded says how to fix it. */
  async load(path: string): Promise<Readonly<Record<string, unknown>>> {
    const file = resolve(path)
    if (!existsSync(file)) throw new UampError('not_found', `There is no file ${file}`)
    if (!/\.[mc]?js$|\.m?ts$/.test(file)) throw refusal(file, 'is neither JavaScript nor TypeScript: use .js, .mjs, .cjs, .ts or .mts')
    if (/\.m?ts$/.test(file)) stripTypes()
    const version = this.version(file)
    const first = this.#first.get(file) ?? version
    this.#first.set(file, first)
    const { href } = pathToFileURL(file)
    // Node keeps a loaded module for ever, so a changed file needs another URL. The first load has the plain one, which importers share.
    return load(file, first === version ? href : `${href}?version=${encodeURIComponent(version)}`)
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

async function load(file: string, href: string): Promise<Record<string, unknown>> {
  try {
    return (await import(href)) as Record<string, unknown>
  } catch (thrown) {
    const { name, message, code, stack = '' } = (thrown instanceof Error ? thrown : { message: String(thrown) }) as NodeJS.ErrnoException
    if (code === 'ERR_MODULE_NOT_FOUND')
      throw refusal(file, `imports something that does not exist: ${message}. ${missing(message)}`, thrown)
    const next = `Correct it; \`npx uamp doctor ${shown(file)}\` checks it again`
    if (name === 'SyntaxError') {
      const place = placeIn(stack) || (await mistakeIn(file))
      const lines = [`does not parse: ${message.trim()}`, place, advice(message), next]
      throw refusal(file, lines.filter((line) => line !== '').join('\n'), thrown)
    }
    const at = stack.split('\n').find((line) => line.includes(href))
    const place = at === undefined ? '' : ` (${at.trim().replace(/^at (.* \()?(file:\/\/)?|\)$/g, '')})`
    throw refusal(file, `failed while it loaded: ${message}${place}. ${next}, and UAMP_DEBUG=1 shows all of it`, thrown)
  }
}

/** What to do about an import that fails, by Node's own words. */
function missing(message: string): string {
  const [, name] = /^Cannot find package '((?:@[^/']+\/)?[^/']+)/.exec(message) ?? []
  return name === undefined ? "Give the file its extension, as in './tools.ts', and check its path" : `Install it: \`npm install ${name}\``
}

/** Node puts the file, the line and an excerpt of TypeScript before the error's name. */
function placeIn(stack: string): string {
  return stack.slice(0, Math.max(0, stack.indexOf('SyntaxError'))).trim()
}

/** Node does not say where the mistake in a JavaScript file is, but the parser of types does. Empty if the mistake is in another file. */
async function mistakeIn(file: string): Promise<string> {
  if (file.endsWith('ts')) return ''
  const { transformSync } = await import('@swc/wasm-typescript')
  try {
    transformSync(readFileSync(file, 'utf8'), { mode: 'strip-only', module: true, filename: file })
    return `\`node ${shown(file)}\` shows the line`
  } catch (thrown) {
    const { startLine, snippet } = thrown as { readonly startLine?: number; readonly snippet?: string }
    return startLine === undefined ? '' : `${file}:${startLine}\n${snippet ?? ''}`.trim()
  }
}

function advice(message: string): string {
  return /strip-only/.test(message) ? 'Types are erased, not compiled: no enum, namespace or parameter property' : ''
}

function refusal(file: string, problem: string, cause?: unknown): UampError {
  return new UampError('invalid_request', `${file} ${problem}`, { cause })
}
