import { existsSync } from 'node:fs'
import { register } from 'node:module'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { UampError } from '../protocol/errors.ts'

/**
 * What a JavaScript or TypeScript file exports. A file that cannot be loaded is refused with what to do about it. One that has
 * changed is loaded again under another `version`: Node keeps what it has loaded for ever.
 */
export async function loadModule(
  path: string,
  { version }: { readonly version?: string } = {},
): Promise<Readonly<Record<string, unknown>>> {
  const file = resolve(path)
  if (!existsSync(file)) throw new UampError('not_found', `There is no file ${file}`)
  if (!/\.[mc]?js$|\.m?ts$/.test(file)) throw refusal(file, 'is neither JavaScript nor TypeScript: use .js, .mjs, .cjs, .ts or .mts')
  if (/\.m?ts$/.test(file)) stripTypes()
  const { href } = pathToFileURL(file)
  return load(file, version === undefined ? href : `${href}?version=${encodeURIComponent(version)}`)
}

/** Once in a process: hooks add up, and Node has no way to take one out. */
let stripping = false

function stripTypes(): void {
  // False or absent where Node leaves TypeScript alone.
  const { typescript } = process.features as { readonly typescript?: string | false }
  if (stripping || typescript) return
  stripping = true
  register('../cli/strip-types.js', import.meta.url)
}

async function load(file: string, href: string): Promise<Record<string, unknown>> {
  try {
    return (await import(href)) as Record<string, unknown>
  } catch (thrown) {
    const { name, message, code, stack = '' } = thrown as Error & { readonly code?: string }
    if (code === 'ERR_MODULE_NOT_FOUND') {
      throw refusal(
        file,
        `imports what is not there: ${message}. Install the package, or give the file its extension, as in './tools.ts'`,
        thrown,
      )
    }
    if (name === 'SyntaxError') {
      const lines = [`does not parse: ${message.trim()}`, place(stack), advice(file, message)]
      throw refusal(file, lines.filter((line) => line !== '').join('\n'), thrown)
    }
    throw refusal(file, `failed while it was loaded: ${message}`, thrown)
  }
}

/** Node puts file, line and excerpt of TypeScript above the name of the error. */
function place(stack: string): string {
  return stack.slice(0, Math.max(0, stack.indexOf('SyntaxError'))).trim()
}

function advice(file: string, message: string): string {
  if (/strip-only/.test(message)) return 'Types are erased, not compiled: no enum, namespace or parameter property'
  return file.endsWith('ts') ? '' : `\`node ${file}\` shows the line`
}

function refusal(file: string, problem: string, cause?: unknown): UampError {
  return new UampError('invalid_request', `${file} ${problem}`, { cause })
}
