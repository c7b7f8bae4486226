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
 * A loader for Node versions that do not strip types themselves. It uses the stripper of newer versions, so that the same code runs on
 * both, and lines keep their numbers. Like Node's own, it leaves packages alone.
 */
export const load: LoadHook = async (url, context, nextLoad) => {
  // A module that is loaded again has a version after its name.
  if (!/\.m?ts(\?|$)/.test(url) || url.includes('/node_modules/')) return nextLoad(url, context)
  const filename = fileURLToPath(url)
  const text = await readFile(filename, 'utf8')
  try {
    return { format: 'module', shortCircuit: true, source: transformSync(text, { mode: 'strip-only', module: true, filename }).code }
  } catch (thrown) {
    // The stripper throws plain objects. Only text leaves the loader's thread intact.
    const { message, snippet, startLine } = thrown as SyntaxProblem
    throw new SyntaxError(`${filename}:${startLine}: ${message}\n${snippet}`)
  }
}
