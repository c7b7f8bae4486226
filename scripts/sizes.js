// @ts-check
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { build } from 'esbuild'
import { root } from './build.js'

/**
 * `npm run sizes -- [--file table.md] [filter …]`: answers of every size over every transport, in every way to ask and to read. CI runs
 * pairs of these; this takes an hour. A filter is a part of a cell's name, such as `ACP`, `60 MiB` or `stops`.
 */
const { values, positionals } = parseArgs({ options: { file: { type: 'string' } }, allowPositionals: true })

// Where it finds the packages that it imports, and two folders below `package.json`, as the sources do.
const folder = join(root, 'node_modules/.sizes')
const outfile = join(folder, 'full.mjs')
mkdirSync(folder, { recursive: true })
await build({
  entryPoints: ['test/sizes/full.ts'],
  absWorkingDir: root,
  bundle: true,
  format: 'esm',
  platform: 'node',
  target: 'node20',
  packages: 'external',
  outfile,
})
process.env['UAMP_SIZES'] = 'full'
/** @type {typeof import('../test/sizes/full.ts')} */
const { runAll } = await import(pathToFileURL(outfile).href)
rmSync(folder, { recursive: true })
const { text, failed } = await runAll({ filters: positionals, onCell: (line) => console.error(line), file: values.file })
console.log(text)
console.log(failed === 0 ? 'No cell failed.' : `${failed} cells failed.`)
process.exit(failed === 0 ? 0 : 1)
