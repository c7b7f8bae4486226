import { closeSync, fsyncSync, mkdirSync, openSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { TABLE_DATE } from '../../agents/llm/price-table.ts'
import { fetchHttp } from '../../core/http/fetch-http.ts'
import type { Timeouts } from '../../core/ports/http.ts'
import type { ModelTable } from '../../core/ports/models.ts'
import { UampError } from '../../protocol/errors.ts'
import { isRecord, JsonBoundError, parseJson, recordsIn } from '../../protocol/json.ts'
import { fromGenaiPrices } from './genai-prices.ts'
import { checkedTable, TABLE_BYTES, type StoredTable } from './table.ts'

const TIMEOUTS: Timeouts = { firstByteMs: 15_000, idleMs: 15_000, totalMs: 60_000 }

export interface UpdateOptions {
  /** A file, or an `http(s)` URL. */
  readonly source: string
  /** The table that is replaced. */
  readonly file: string
  readonly now: () => number
  readonly timeouts?: Timeouts
}

/** Replaces the table by a newer one. Whatever is wrong with that one, the table stays as it is, and the error says why. */
export async function updateTable({ source, file, now, timeouts = TIMEOUTS }: UpdateOptions): Promise<StoredTable> {
  const today = new Date(now()).toISOString().slice(0, 10)
  // On a machine whose clock is behind, the new table must not look older than ours.
  const date = today < TABLE_DATE ? TABLE_DATE : today
  const from = sourceName(source)
  try {
    const text = isUrl(source) ? await download(source, timeouts) : read(source)
    const table = { from, date, models: tableIn(parsed(text), date) }
    write(file, `${JSON.stringify(table)}\n`)
    return table
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new UampError('invalid_request', `${from} cannot be used: ${why}. The table stays as it is`, { cause })
  }
}

/** The models in a list of genai-prices, or in a table of ours. */
function tableIn(value: unknown, date: string): ModelTable {
  if (Array.isArray(value)) return checkedTable(fromGenaiPrices((id) => recordsIn(value).find((each) => each['id'] === id), date))
  if (isRecord(value) && 'models' in value) return checkedTable(value['models'])
  throw new Error(
    'it is neither a list of genai-prices nor a table of uamp, such as {"models":{"openai/gpt-5":{"input":1.25,"output":10}}}',
  )
}

function parsed(text: string): unknown {
  try {
    return parseJson(text)
  } catch (thrown) {
    // A message of `JSON.parse` repeats the text.
    throw thrown instanceof JsonBoundError ? new Error(`it ${thrown.message}`) : new Error('it is not JSON')
  }
}

function isUrl(source: string): boolean {
  return /^https?:\/\//i.test(source)
}

/** Without the query, which may be a secret. */
function sourceName(source: string): string {
  if (!isUrl(source)) return source
  if (!URL.canParse(source)) throw new UampError('invalid_request', 'The address of the list is not an address')
  const { origin, pathname, username, password } = new URL(source)
  // `fetch` refuses them, and repeats them in its message.
  if (username !== '' || password !== '')
    throw new UampError('invalid_request', 'The address of the list must not contain a name or a password')
  return origin + pathname
}

async function download(url: string, timeouts: Timeouts): Promise<string> {
  const { signal } = new AbortController()
  const headers = { accept: 'application/json' }
  const answer = await fetchHttp()
    .request({ url, method: 'GET', headers, signal, timeouts, maxBytes: TABLE_BYTES })
    .catch((cause: unknown) => Promise.reject(unreachable(cause)))
  if (answer.status !== 200) {
    await answer.body[Symbol.asyncIterator]().return?.(undefined)
    throw new Error(`the server answers with ${answer.status}`)
  }
  const decoder = new TextDecoder()
  let text = ''
  for await (const chunk of answer.body) text += decoder.decode(chunk, { stream: true })
  return text + decoder.decode()
}

/** `fetch` says only that it failed. Its cause says why. */
function unreachable(thrown: unknown): Error {
  const { message, cause } = thrown as Error
  const { code, message: why = message } = (cause ?? {}) as Partial<NodeJS.ErrnoException>
  return new Error(`it cannot be reached (${code ?? why})`, { cause: thrown })
}

function read(file: string): string {
  const stats = statSync(file, { throwIfNoEntry: false })
  if (!stats) throw new Error('there is no such file')
  // A pipe or a device may have no end.
  if (!stats.isFile()) throw new Error('it is no file')
  if (stats.size > TABLE_BYTES) throw new Error(`it has more than ${TABLE_BYTES} bytes`)
  return readFileSync(file, 'utf8')
}

/** Whoever reads the file sees the old one or the new one, also after a crash. */
function write(file: string, text: string): void {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  const next = `${file}.${process.pid}.new`
  try {
    const handle = openSync(next, 'w', 0o600)
    try {
      writeFileSync(handle, text)
      fsyncSync(handle)
    } finally {
      closeSync(handle)
    }
    renameSync(next, file)
  } catch (thrown) {
    rmSync(next, { force: true })
    throw thrown
  }
}
