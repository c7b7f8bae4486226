// @ts-check
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { build } from 'esbuild'
import { root } from './build.js'

/**
 * `npm pack @pydantic/genai-prices`, unpack it, and `node scripts/prices.js <folder>`: writes the table of models that ships, with what
 * holds today. The package (MIT) is kept by many people, and is too large to depend on: half a megabyte for a thousand models.
 */
const [folder] = process.argv.slice(2)
if (folder === undefined) throw new Error('Name the folder of an unpacked @pydantic/genai-prices')
const { version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
const { findProvider } = await import(pathToFileURL(resolve(folder, 'dist/index.js')).href)

// The same code that `uamp models update` runs.
const place = join(root, 'node_modules/.prices')
const outfile = join(place, 'ours.mjs')
mkdirSync(place, { recursive: true })
const contents = `export { fromGenaiPrices, VENDOR_IDS } from './src/cli/models/genai-prices.ts'
export { checkedTable } from './src/cli/models/table.ts'
export { isVersion } from './src/agents/llm/prices.ts'`
await build({ stdin: { contents, resolveDir: root }, bundle: true, format: 'esm', platform: 'node', packages: 'external', outfile })
const { fromGenaiPrices, VENDOR_IDS, checkedTable, isVersion } = await import(pathToFileURL(outfile).href)
rmSync(place, { recursive: true })

const today = new Date().toISOString().slice(0, 10)
const providers = VENDOR_IDS.map((/** @type {string} */ providerId) => findProvider({ providerId }))
/** @type {Record<string, import('../src/core/ports/models.ts').ModelFacts>} */
const table = checkedTable(fromGenaiPrices(providers, today))

/** Whether another row covers it. @param {string} name @returns {boolean} */
const isCovered = (name) =>
  Object.keys(table).some((other) => isVersion(name, other) && JSON.stringify(table[other]) === JSON.stringify(table[name]))
const rows = Object.entries(table).flatMap(([name, { input, output, cacheRead, cacheWrite, contextWindow }]) => {
  if (isCovered(name)) return []
  const prices = [input, output, cacheRead, cacheWrite]
    .join(', ')
    .replace(/(, )+$/, '')
    .replaceAll(', ,', ', undefined,')
  const window = contextWindow?.toLocaleString('en').replaceAll(',', '_')
  return [`'${name}': ${window === undefined ? `p(${prices})` : `w(${window}, ${prices})`},`]
})

const lines = ['']
for (const row of rows) {
  if (`${lines.at(-1)} ${row}`.length > 134) lines.push('')
  lines[lines.length - 1] = `${lines.at(-1)} ${row}`.trim()
}
writeFileSync(
  join(root, 'src/agents/llm/price-table.ts'),
  `import type { ModelFacts, ModelTable, Price } from '../../core/ports/models.ts'

/** Made by \`scripts/prices.js\` of @pydantic/genai-prices ${version} (MIT), with what held on this day. */
export const TABLE_DATE = '${today}'

type Row = readonly [input: number, output: number, cacheRead?: number, cacheWrite?: number]
const p = (...[input, output, cacheRead, cacheWrite]: Row): Price => ({ input, output, cacheRead, cacheWrite })
/** With the tokens that fit into a request. */
const w = (contextWindow: number, ...row: Row): ModelFacts => ({ ...p(...row), contextWindow })

// prettier-ignore
export const TABLE: ModelTable = {
${lines.map((line) => `  ${line}`).join('\n')}
}
`,
)
console.log(`${rows.length} models`)
