import { TABLE_DATE } from '../../agents/llm/price-table.ts'
import { MODELS, rowOf } from '../../agents/llm/prices.ts'
import { shown } from '../../config/shown.ts'
import { didYouMean } from '../../core/basics/nearest.ts'
import type { ModelFacts, ModelTable } from '../../core/ports/models.ts'
import { PROVIDERS, typeOf, type ProviderKind } from '../../providers/by-name.ts'
import { limitsText, priceText } from '../models/facts.ts'
import { LIST_URL } from '../models/genai-prices.ts'
import { readTable, tableFile, type StoredTable } from '../models/table.ts'
import { updateTable } from '../models/update.ts'
import { harmless, report } from '../print.ts'

/** The most models that are listed. */
const LISTED = 50

/** Prints what is known of the models with this name, or of how many there is something known. */
export async function showModels(name: string | undefined): Promise<number> {
  const stored = storedTable()
  const isNewer = stored !== undefined && stored.date >= TABLE_DATE
  const table = isNewer ? { ...MODELS, ...stored.models } : MODELS
  const from = isNewer ? `${stored.from}, of ${stored.date}` : `this version of uamp, of ${TABLE_DATE}`
  if (name === undefined) return summary(table, from)
  const names = namesLike(name, table)
  if (names.length === 0) return unknown(name, table)
  const width = Math.max(...names.slice(0, LISTED).map((each) => each.length))
  const lines = names.slice(0, LISTED).map(async (each) => `${each.padEnd(width)}  ${await textOf(each, rowOf(each, table))}`)
  print(await Promise.all(lines))
  if (names.length > LISTED) print([`${names.length - LISTED} more: write more of the name.`])
  return 0
}

async function unknown(given: string, table: ModelTable): Promise<number> {
  const name = ownName(given)
  const limits = limitsText(await limitsOf(name, undefined))
  print([
    `No price is known for "${given}"${didYouMean(name, Object.keys(table))}`,
    ...(limits === '' ? [] : [`It takes ${limits}.`]),
    '`uamp models update` gets newer prices, and `prices` in a config or in llmAgent adds your own.',
  ])
  return 1
}

export async function updateModels(source: string = LIST_URL): Promise<number> {
  const file = tableFile(process.env)
  const before = { ...MODELS, ...storedTable()?.models }
  const { models, from } = await updateTable({ source, file, now: Date.now })
  const names = Object.keys(models)
  const fresh = names.filter((name) => rowOf(name, before) === undefined).length
  const changed = names.filter((name) => isChanged(rowOf(name, before), models[name])).length
  print([
    `${names.length} models from ${from}: ${fresh} are new, ${changed} have another price.`,
    `They are kept in ${shown(file)}, and used by whatever is started from now on.`,
  ])
  return 0
}

/** A table that cannot be used is told, and does as if it were not there. */
function storedTable(): StoredTable | undefined {
  try {
    return readTable(tableFile(process.env))
  } catch (thrown) {
    report(thrown)
    return undefined
  }
}

function isChanged(before: ModelFacts | undefined, after: ModelFacts | undefined): boolean {
  return (
    before !== undefined &&
    after !== undefined &&
    (['input', 'output', 'cacheRead', 'cacheWrite'] as const).some((field) => before[field] !== after[field])
  )
}

/** The one model with the whole name, else all whose name has this in it. */
function namesLike(given: string, table: ModelTable): readonly string[] {
  const name = ownName(given)
  return rowOf(name, table) ? [name] : Object.keys(table).filter((each) => each.toLowerCase().includes(name.toLowerCase()))
}

/** `google/…` for `gemini/…`: the name under which prices are found. */
function ownName(given: string): string {
  const slash = given.indexOf('/')
  const type = typeOf(given.slice(0, slash))
  return type === undefined ? given : type + given.slice(slash)
}

async function textOf(name: string, facts: ModelFacts | undefined): Promise<string> {
  const limits = limitsText(await limitsOf(name, facts))
  const price = facts ? priceText(facts) : 'no price is known'
  return [price, limits].filter((part) => part !== '').join('; ')
}

/** What the provider says of its model, else what the table has. */
async function limitsOf(name: string, facts: ModelFacts | undefined): Promise<Pick<ModelFacts, 'contextWindow' | 'maxOutput'>> {
  const slash = name.indexOf('/')
  const type = typeOf(name.slice(0, slash))
  const kind: ProviderKind | undefined = type && type !== 'openai-compatible' ? PROVIDERS[type] : undefined
  const able = await (await kind?.create({ name: name.slice(0, slash) }))?.capabilities(name.slice(slash + 1))
  return { contextWindow: able?.context_window ?? facts?.contextWindow, maxOutput: able?.max_output_tokens ?? facts?.maxOutput }
}

function summary(table: ModelTable, from: string): number {
  const counts = new Map<string, number>()
  for (const name of Object.keys(table)) {
    const provider = name.slice(0, name.indexOf('/'))
    counts.set(provider, (counts.get(provider) ?? 0) + 1)
  }
  print([
    `Prices and limits of ${Object.keys(table).length} models, from ${from}:`,
    [...counts].map(([provider, count]) => `${provider} ${count}`).join(', '),
    '`uamp models <name>` shows those of a model, and `uamp models update` gets newer ones.',
  ])
  return 0
}

/** Names may come from a stranger's table. */
function print(lines: readonly string[]): void {
  if (lines.length > 0) process.stdout.write(`${harmless(lines.join('\n'))}\n`)
}
