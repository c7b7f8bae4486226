import { readFile } from 'node:fs/promises'
import type { LoadHook } from 'node:module'
import { fileURLToPath } from 'node:url'
import { transformSync } from '@swc/wasm-typescript'

interface SyntaxProblem {
  readonly message: string
  readonly snippet: string
  readonly startLine: number
}

/**
 * A loader for Node versions that do not strip types by themselves, with the stripper that newer ones have built in: what
 * runs here runs there, and lines stay where they were. Node's own refuses packages, so this leaves them alone too.
 */
export const load: LoadHook = async (url, context, nextLoad) => {
  // A module that is loaded again has a version behind its name.
  if (!/\.m?ts(\?|$)/.test(url) || url.includes('/node_modules/')) return nextLoad(url, context)
  const filename = fileURLToPath(url)
  const text = await readFile(filename, 'utf8')
  try {
    return { format: 'module', shortCircuit: true, source: transformSync(text, { mode: 'strip-only', module: true, filename }).code }
  } catch (thrown) {
    // It throws plain objects. Only text gets out of the loader's thread in good order.
    const { message, snippet, startLine } = thrown as SyntaxProblem
    throw new SyntaxError(`${filename}:${startLine}: ${message}\n${snippet}`)
  }
}
