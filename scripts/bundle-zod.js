// @ts-check
import { readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { buildSync } from 'esbuild'

const IMPORT = /^import \* as z from '([^']*)';?$/m

/**
 * zod comes as 92 modules, 64 of them the languages of its messages, and loading them takes a fifth of a server's start. What the
 * compiled files use of it goes into one file of ours, which they then import.
 *
 * @param {{ root: string, dist: string, files: readonly string[] }} folders
 */
export function bundleZod({ root, dist, files }) {
  const bundle = join(dist, 'vendor', 'zod.js')
  const users = files.filter((file) => file.endsWith('.js') && file !== bundle).flatMap((file) => userOf(file))
  const used = new Set(users.flatMap(({ text }) => [...text.matchAll(/\bz\.(\w+)/g)].map(([, name]) => String(name))))
  buildSync({
    stdin: { contents: `export { ${[...used].sort().join(', ')} } from 'zod/mini'`, resolveDir: root },
    outfile: bundle,
    bundle: true,
    format: 'esm',
    platform: 'neutral',
    logLevel: 'error',
  })
  for (const { file, text, from } of users) {
    const path = relative(dirname(file), bundle).replaceAll('\\', '/')
    const own = path.startsWith('.') ? path : `./${path}`
    if (from !== own) writeFileSync(file, text.replace(IMPORT, `import * as z from '${own}'`))
  }
}

/** @param {string} file @returns {{ file: string, text: string, from: string }[]} */
function userOf(file) {
  const text = readFileSync(file, 'utf8')
  const from = IMPORT.exec(text)?.[1]
  return from === undefined || !/(^zod\/mini|vendor\/zod\.js)$/.test(from) ? [] : [{ file, text, from }]
}
