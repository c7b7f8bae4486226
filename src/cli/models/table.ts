import { readFileSync, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import type { ModelTable } from '../../core/ports/models.ts'
import { UampError } from '../../protocol/errors.ts'
import { isRecord, parseJson } from '../../protocol/json.ts'
import { shown } from '../../config/shown.ts'

/** The most bytes of a table, and of a list that one is made of. The whole list of genai-prices has 0.4 MB. */
export const TABLE_BYTES = 8 * 1024 * 1024
const MOST_MODELS = 10_000
const NAME = /^[\w-]{1,64}\/[\w./:@-]{1,200}$/
/** US dollars for a million tokens: a hundred times the dearest model. */
const MOST_DOLLARS = 100_000
const MOST_TOKENS = 1_000_000_000

/** A table that `uamp models update` wrote. */
export interface StoredTable {
  /** Where it came from. */
  readonly from: string
  /** When, as `2026-11-18`. */
  readonly date: string
  readonly models: ModelTable
}

/** The file of the table: one for a user, so that every later run finds it. */
export function tableFile(env: NodeJS.ProcessEnv): string {
  const data = env['UAMP_DATA']
  return join(data && data !== 'memory' ? data : join(homedir(), '.uamp'), 'models.json')
}

/** Undefined if there is none. Throws if it cannot be used. */
export function readTable(file: string): StoredTable | undefined {
  const stats = statSync(file, { throwIfNoEntry: false })
  if (!stats) return undefined
  try {
    if (!stats.isFile() || stats.size > TABLE_BYTES) throw mistaken(`it is no file of up to ${TABLE_BYTES} bytes`)
    const value = parseJson(readFileSync(file, 'utf8'))
    if (!isRecord(value)) throw mistaken('it is no table')
    return { from: String(value['from']), date: String(value['date']), models: checkedTable(value['models']) }
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new UampError('invalid_request', `${shown(file)} cannot be used: ${why}. \`uamp models update\` writes it anew`, { cause })
  }
}

const NUMBERS = {
  input: [0, MOST_DOLLARS],
  output: [0, MOST_DOLLARS],
  cacheRead: [0, MOST_DOLLARS],
  cacheWrite: [0, MOST_DOLLARS],
  contextWindow: [1, MOST_TOKENS],
  maxOutput: [1, MOST_TOKENS],
} as const

/** The table, if all of it is in order. Throws with the first mistake. */
export function checkedTable(value: unknown): ModelTable {
  if (!isRecord(value)) throw mistaken('it has no models')
  const rows = Object.entries(value)
  if (rows.length === 0) throw mistaken('it has no models')
  if (rows.length > MOST_MODELS) throw mistaken(`it has ${rows.length} models, and ${MOST_MODELS} are the most`)
  for (const [name, row] of rows) {
    const mistake = NAME.test(name) ? mistakeIn(row) : 'is no provider/model'
    if (mistake !== undefined) throw mistaken(`"${name.slice(0, 100)}" ${mistake}`)
  }
  return value as unknown as ModelTable
}

function mistakeIn(row: unknown): string | undefined {
  if (!isRecord(row)) return 'has no price'
  const unknown = Object.keys(row).find((field) => !Object.hasOwn(NUMBERS, field))
  if (unknown !== undefined) return `has an unknown field, "${unknown.slice(0, 100)}"`
  for (const [field, [least, most]] of Object.entries(NUMBERS)) {
    const number = row[field]
    if (number === undefined && field !== 'input' && field !== 'output') continue
    const fits = typeof number === 'number' && number >= least && number <= most
    if (!fits) return `needs a number from ${least} to ${most} as ${field}`
    if (least === 1 && !Number.isInteger(number)) return `needs a whole number as ${field}`
  }
  return undefined
}

function mistaken(why: string): UampError {
  return new UampError('invalid_request', why)
}
