// @ts-check
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
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
const entryPoints = ['cli/models/genai-prices', 'cli/models/table', 'agents/llm/prices'].map((name) => `src/${name}.ts`)
await build({ entryPoints, absWorkingDir: root, outdir: place, bundle: true, format: 'esm', platform: 'node', packages: 'external' })
/** @param {string} name */
const built = (name) => import(pathToFileURL(join(place, `${name}.js`)).href)
/** @type {typeof import('../src/cli/models/genai-prices.ts')} */
const { fromGenaiPrices } = await built('cli/models/genai-prices')
/** @type {typeof import('../src/cli/models/table.ts')} */
const { checkedTable } = await built('cli/models/table')
/** @type {typeof import('../src/agents/llm/prices.ts')} */
const { rowOf } = await built('agents/llm/prices')
rmSync(place, { recursive: true })

const today = new Date().toISOString().slice(0, 10)
const table = checkedTable(fromGenaiPrices((providerId) => findProvider({ providerId }), today))

/** Whether another row covers it. @param {string} name @returns {boolean} */
const isCovered = (name) => {
  const { [name]: own, ...others } = table
  return JSON.stringify(rowOf(name, others)) === JSON.stringify(own)
}
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
