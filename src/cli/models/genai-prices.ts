/** The list of genai-prices (MIT), which many people keep up to date: https://github.com/pydantic/genai-prices. */
import { fieldsOf, isRecord, recordsIn } from '../../protocol/json.ts'

export const LIST_URL = 'https://raw.githubusercontent.com/pydantic/genai-prices/main/prices/new_data/v2/data.json'

/** Their id of each vendor, and our prefix. For vendors of the AI SDK it is the SDK's name. */
const VENDORS = {
  openai: 'openai/',
  anthropic: 'anthropic/',
  google: 'google/',
  deepseek: 'deepseek/',
  fireworks: 'fireworks/accounts/fireworks/models/',
  mistral: 'mistral/',
  groq: 'groq/',
  'x-ai': 'xai/',
  cohere: 'cohere/',
  perplexity: 'perplexity/',
  cerebras: 'cerebras/',
}

const NAME = /^[\w./:-]*\w$/
/** Rules are not nested deeper. */
const DEPTH = 4

type Row = Readonly<Record<string, unknown>>

/** The rows of our table, with what holds today (`2026-11-18`). `find` gives a vendor of the list. Their values are not checked. */
export function fromGenaiPrices(find: (id: string) => unknown, today: string): Record<string, Row> {
  const rows: Record<string, Row> = {}
  for (const [id, prefix] of Object.entries(VENDORS)) {
    const table = new Map<string, Row>()
    for (const model of recordsIn(fieldsOf(find(id))['models'])) {
      const row = rowOf(model, today)
      if (!row) continue
      for (const name of [model['id'], ...namesIn(model['match'], DEPTH)]) {
        if (typeof name === 'string' && NAME.test(name)) table.set(name, row)
      }
    }
    withoutPreviews(table)
    for (const [name, row] of table) rows[prefix + name] = row
  }
  return rows
}

/** Undefined if the model has no price by token. */
function rowOf({ prices, context_window: contextWindow }: Row, today: string): Row | undefined {
  const price = fieldsOf(current(prices, today))
  const [input, output] = [base(price['input_mtok']), base(price['output_mtok'])]
  if (input === undefined || output === undefined) return undefined
  const [cacheRead, cacheWrite] = [base(price['cache_read_mtok']), base(price['cache_write_mtok'])]
  const row = { input, output, cacheRead, cacheWrite, contextWindow }
  return Object.fromEntries(Object.entries(row).filter(([, value]) => value !== undefined))
}

/** Of prices by date, those that hold today; of those by time of day, those of most hours, which have no condition. */
function current(prices: unknown, today: string): unknown {
  if (!Array.isArray(prices)) return prices
  const begun = recordsIn(prices).flatMap(({ constraint, prices: each }) => {
    const start = isRecord(constraint) ? constraint['start_date'] : ''
    return typeof start === 'string' && start <= today ? [{ start, each }] : []
  })
  return begun.toSorted((a, b) => a.start.localeCompare(b.start)).at(-1)?.each
}

/** Of prices that grow with the prompt, that of short ones. */
function base(price: unknown): unknown {
  return isRecord(price) ? price['base'] : price
}

/** The names that a rule is for. */
function namesIn(match: unknown, depth: number): unknown[] {
  const { or, equals, starts_with } = fieldsOf(match)
  if (Array.isArray(or)) return depth === 0 ? [] : or.flatMap((each) => namesIn(each, depth - 1))
  return [equals ?? starts_with]
}

/** A preview becomes the model, at the same price. The price of a preview that is over must not count for a later one. */
function withoutPreviews(table: Map<string, Row>): void {
  for (const [name, row] of [...table]) {
    const plain = name.replace(/-preview$/, '')
    if (plain === name) continue
    if (!table.has(plain)) table.set(plain, row)
    table.delete(name)
  }
}
