// @ts-check
import { readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { root } from './build.js'

/**
 * `npm pack @pydantic/genai-prices`, unpack it, and `node scripts/prices.js <folder>`: writes the table of prices that ships, with what
 * holds today. The package (MIT) is kept by many people, and is too large to depend on: half a megabyte for a thousand models.
 */
const [folder] = process.argv.slice(2)
if (folder === undefined) throw new Error('Name the folder of an unpacked @pydantic/genai-prices')
const { version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
const { findProvider } = await import(pathToFileURL(resolve(folder, 'dist/index.js')).href)

/** By our name, which for vendors of the AI SDK is theirs. */
const VENDORS = {
  openai: 'openai',
  anthropic: 'anthropic',
  google: 'google',
  deepseek: 'deepseek',
  fireworks: 'fireworks',
  mistral: 'mistral',
  groq: 'groq',
  xai: 'x-ai',
  cohere: 'cohere',
  perplexity: 'perplexity',
  cerebras: 'cerebras',
}
const today = new Date().toISOString().slice(0, 10)
const NAME = /^[\w./:-]*[\w]$/
/** As `priceOf` reads names: those that a version is all that is added to need no row. */
const VERSION = /^[-@:](?:latest|preview|exp|\d{2,})(?:[-@:.]?(?:latest|preview|exp|\d+))*$/

/** @param {any} price The first of tiers: the price of short prompts. */
const first = (price) => (typeof price === 'object' ? price?.base : price)

/** @param {any} prices Of several by date, the one that holds today; of those by time of day, the one of most hours. */
function current(prices) {
  if (!Array.isArray(prices)) return prices
  const begun = prices.filter(({ constraint }) => !constraint || (constraint.start_date ?? '9999') <= today)
  return begun.sort((a, b) => (a.constraint?.start_date ?? '').localeCompare(b.constraint?.start_date ?? '')).at(-1)?.prices
}

/** @param {any} match @returns {string[]} The names that a rule is for. */
function namesIn(match) {
  if (match.or) return match.or.flatMap(namesIn)
  const name = match.equals ?? match.starts_with
  return name === undefined || !NAME.test(name) ? [] : [name]
}

const rows = Object.entries(VENDORS).flatMap(([vendor, id]) => {
  /** @type {Map<string, string>} */
  const table = new Map()
  for (const model of findProvider({ providerId: id }).models) {
    const prices = current(model.prices)
    const [input, output] = [first(prices?.input_mtok), first(prices?.output_mtok)]
    if (input === undefined || output === undefined) continue
    const [read, written] = [first(prices.cache_read_mtok), first(prices.cache_write_mtok)]
    const price = [input, output, read, written]
      .map(String)
      .join(', ')
      .replace(/(, undefined)+$/, '')
    for (const name of [model.id, ...namesIn(model.match)]) if (NAME.test(name)) table.set(name, price)
  }
  // A preview becomes the model, at the same price.
  for (const [name, price] of [...table]) {
    const base = name.replace(/-preview$/, '')
    if (base === name) continue
    if (!table.has(base)) table.set(base, price)
    // The price of a preview that is over must not count for a later one.
    table.delete(name)
  }
  const isVersion = (/** @type {string} */ name) =>
    [...table].some(([base, price]) => name.startsWith(base) && VERSION.test(name.slice(base.length)) && price === table.get(name))
  const prefix = vendor === 'fireworks' ? 'fireworks/accounts/fireworks/models/' : `${vendor}/`
  return [...table].filter(([name]) => !isVersion(name)).map(([name, price]) => `'${prefix}${name}': p(${price}),`)
})

const lines = ['']
for (const row of rows) {
  if (`${lines.at(-1)} ${row}`.length > 134) lines.push('')
  lines[lines.length - 1] = `${lines.at(-1)} ${row}`.trim()
}
writeFileSync(
  join(root, 'src/agents/llm/price-table.ts'),
  `import type { Price, PriceTable } from './prices.ts'

/** Made by \`scripts/prices.js\` of @pydantic/genai-prices ${version} (MIT), with what held on ${today}. */
type Row = readonly [input: number, output: number, cacheRead?: number, cacheWrite?: number]
const p = (...[input, output, cacheRead, cacheWrite]: Row): Price => ({ input, output, cacheRead, cacheWrite })

// prettier-ignore
export const TABLE: PriceTable = {
${lines.map((line) => `  ${line}`).join('\n')}
}
`,
)
console.log(`${rows.length} models`)
