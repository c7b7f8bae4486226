import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { TABLE_DATE } from '../../agents/llm/price-table.ts'
import type { Timeouts } from '../../core/ports/http.ts'
import { readTable } from './table.ts'
import { updateTable } from './update.ts'

const NOW = Date.parse('2126-11-20T12:00:00Z')
const ROW = { input: 1, output: 2 }
const OLD = JSON.stringify({ from: 'before', date: '2026-11-01', models: { 'openai/old': ROW } })

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'uamp-models-'))
  onTestFinished(() => rmSync(path, { recursive: true }))
  return path
}

/** A folder with a table in it, and a way to replace the table. Only what is to be over soon has little time. */
function place(soon: Partial<Timeouts> = {}) {
  const path = folder()
  const file = join(path, 'models.json')
  writeFileSync(file, OLD)
  const timeouts = { firstByteMs: 30_000, idleMs: 30_000, totalMs: 30_000, ...soon }
  return { path, file, update: (source: string) => updateTable({ source, file, now: () => NOW, timeouts }) }
}

/** The update fails, and nothing has changed. */
async function refused(source: string, at = place()): Promise<string> {
  const before = readdirSync(at.path)
  const error = await at.update(source).then(
    () => new Error('It was not refused'),
    (thrown: Error) => thrown,
  )
  expect(error.message).toMatch(/ cannot be used: .*\. The table stays as it is$/)
  expect(readFileSync(at.file, 'utf8')).toBe(OLD)
  expect(readdirSync(at.path)).toEqual(before)
  return error.message
}

function written(text: string): string {
  const file = join(folder(), 'given.json')
  writeFileSync(file, text)
  return file
}

async function serving(listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

test('a table of ours replaces the one before, and is read again', async () => {
  const { path, file, update } = place()
  const models = { 'acme/big': { ...ROW, cacheRead: 0.1, cacheWrite: 3, contextWindow: 1000, maxOutput: 100 }, 'acme/accounts/x:y@1': ROW }
  const source = written(JSON.stringify({ models }))
  await update(source)
  expect(readTable(file)).toEqual({ from: source, date: '2126-11-20', models })
  expect(readdirSync(path)).toEqual(['models.json'])
})

test('a list of genai-prices is fetched, and the query of its address is not kept', async () => {
  const url = await serving((_, response) =>
    response.end(JSON.stringify([{ id: 'openai', models: [{ id: 'gpt-9', match: {}, prices: { input_mtok: 1, output_mtok: 2 } }] }])),
  )
  const { file, update } = place()
  await update(`${url}/list.json?key=hidden`)
  expect(readTable(file)).toEqual({ from: `${url}/list.json`, date: '2126-11-20', models: { 'openai/gpt-9': ROW } })
})

test('on a machine whose clock is behind, a new table is not older than ours', async () => {
  const file = join(folder(), 'models.json')
  await updateTable({ source: written(JSON.stringify({ models: { 'a/b': ROW } })), file, now: () => 0 })
  expect(readTable(file)?.date).toBe(TABLE_DATE)
})

test('a table is written where there was no folder yet', async () => {
  const file = join(folder(), 'new/place/models.json')
  await updateTable({ source: written(JSON.stringify({ models: { 'a/b': ROW } })), file, now: () => NOW })
  expect(readTable(file)?.models).toEqual({ 'a/b': ROW })
})

const many = Object.fromEntries(Array.from({ length: 10_001 }, (_, at) => [`a/${at}`, ROW]))
const withRow = (row: unknown) => JSON.stringify({ models: { 'openai/gpt-5': row } })

test.each([
  ['an empty file', '', /it is not JSON/],
  ['a page', '<html>not found</html>', /it is not JSON\./],
  ['half of a table', withRow(ROW).slice(0, -4), /it is not JSON/],
  ['another thing', '{"gpt-5":1}', /neither a list of genai-prices nor a table of uamp/],
  ['a number', '5', /neither a list/],
  ['an empty list', '[]', /it has no models/],
  ['a list without our vendors', '[{"id":"acme","models":[]}]', /it has no models/],
  ['no models', '{"models":{}}', /it has no models/],
  ['models in a list', '{"models":[{"input":1}]}', /it has no models/],
  ['too many models', JSON.stringify({ models: many }), /it has 10001 models/],
  ['brackets', '['.repeat(100_000), /it must nest at most 512 levels/],
  ['more members than are read', `[${'1,'.repeat(200_000)}1]`, /it must have at most \d+ members/],
  ['a negative price', withRow({ input: -1, output: 2 }), /"openai\/gpt-5" needs a number from 0 to 100000 as input/],
  ['a price beyond reason', withRow({ input: 1e300, output: 2 }), /needs a number from 0/],
  ['a price in words', withRow({ input: '1', output: 2 }), /needs a number from 0/],
  ['no price', withRow({ contextWindow: 5 }), /as input/],
  ['half a token', withRow({ ...ROW, contextWindow: 1.5 }), /a whole number as contextWindow/],
  ['no tokens', withRow({ ...ROW, maxOutput: 0 }), /from 1 to \d+ as maxOutput/],
  ['another field', withRow({ ...ROW, run: 'rm' }), /has an unknown field, "run"/],
  ['a row that is none', withRow([1, 2]), /"openai\/gpt-5" has no price|unknown field/],
  ['a name without a provider', JSON.stringify({ models: { 'gpt-5': ROW } }), /"gpt-5" is no provider\/model/],
  ['a name that is a trap', '{"models":{"__proto__":{"input":1,"output":1}}}', /"__proto__" is no provider\/model/],
  ['a name with an escape', JSON.stringify({ models: { 'a/\u001B[2J': ROW } }), /is no provider\/model/],
  [
    'a list with a wrong price',
    '[{"id":"openai","models":[{"id":"m","prices":{"input_mtok":"x","output_mtok":1}}]}]',
    /"openai\/m" needs a number/,
  ],
])('%s is refused, from a file and from a server', async (_, text, why) => {
  expect(await refused(written(text))).toMatch(why)
  expect(await refused(await serving((__, response) => response.end(text)))).toMatch(why)
})

test('what is no file, or too large, is refused without being read', async () => {
  expect(await refused(join(folder(), 'gone.json'))).toMatch(/there is no such file/)
  expect(await refused(folder())).toMatch(/it is no file/)
  expect(await refused(written(' '.repeat(9 * 1024 * 1024)))).toMatch(/it has more than 8388608 bytes/)
})

test.skipIf(process.platform === 'win32')('a pipe, which may have no end, is no file', async () => {
  const pipe = join(folder(), 'pipe')
  execFileSync('mkfifo', [pipe])
  expect(await refused(pipe)).toMatch(/it is no file/)
})

test('a server that is not there, refuses, leads elsewhere, says nothing or never ends changes nothing', async () => {
  const closed = createServer().listen(0, '127.0.0.1')
  await once(closed, 'listening')
  const { port } = closed.address() as AddressInfo
  await new Promise((resolve) => closed.close(resolve))
  expect(await refused(`http://127.0.0.1:${port}/models.json`)).toMatch(/it cannot be reached \(ECONNREFUSED\)/)
  const silent = await serving(() => undefined)
  expect(await refused(silent, place({ firstByteMs: 50 }))).toMatch(/it cannot be reached \(/)
  expect(await refused(await serving((_, response) => response.writeHead(404).end()))).toMatch(/answers with 404/)
  const away = await serving((_, response) => response.writeHead(302, { location: '/elsewhere' }).end())
  expect(await refused(away)).toMatch(/answers with 302/)
  const stalled = await serving((_, response) => void response.write('{"models":'))
  expect(await refused(stalled, place({ idleMs: 50 }))).toMatch(/cannot be used/)
  expect(await refused(stalled, place({ totalMs: 50 }))).toMatch(/cannot be used/)
  const endless = await serving((_, response) => {
    const more = (): void => void (response.writable && response.write(' '.repeat(64 * 1024), more))
    more()
  })
  expect(await refused(endless)).toMatch(/more than 8388608 bytes/)
})

test.each(['https://', 'https://me:hidden@prices.example/list'])(
  '%s is no address of a list, and what is in it is not repeated',
  async (source) => {
    const { file, update } = place()
    const error = await update(source).catch((thrown: Error) => thrown)
    expect(String(error)).toMatch(/^UampError: The address of the list (is|must) not/)
    expect(String(error)).not.toContain('hidden')
    expect(readFileSync(file, 'utf8')).toBe(OLD)
  },
)

test.each([
  ['{"models":', /models\.json cannot be used: .*`uamp models update` writes it anew/],
  [JSON.stringify({ from: 'x', date: '2026-11-20', models: { 'a/b': { input: 'x' } } }), /"a\/b" needs a number/],
])('a table that somebody broke by hand is told: %s', (text, why) => {
  const file = written(text).replace('given.json', 'models.json')
  writeFileSync(file, text)
  expect(() => readTable(file)).toThrow(why)
})
