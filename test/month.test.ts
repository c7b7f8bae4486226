import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'libsql'
import { Pool } from 'undici'
import { expect, onTestFinished, test, vi } from 'vitest'
import { defineAgent } from '../src/core/agent-kit/define-agent.ts'
import { text } from '../src/core/agent-kit/drafts.ts'
import type { Session, SessionInit } from '../src/core/ports/session.ts'
import { startServer } from './support/server.ts'
import { isLong } from './support/trials.ts'

/** Of each: sessions, names, turns, tasks, uploads. `UAMP_MONTH=10000` is a month of a busy server, and takes about a minute of one core. */
const MANY = Number(process.env['UAMP_MONTH'] ?? (isLong ? 2_000 : 400))
const MIB = 1024 * 1024
const DAY = 24 * 3_600_000
const ENDS = new Set(['response.done', 'response.error', 'response.cancelled'])
const TABLES = ['records', 'entries', 'streams', 'groups', 'group_index']

const brief = defineAgent('brief', async function* () {
  yield text('yes')
})

const init: SessionInit = {
  transport: 'test',
  agent: 'brief',
  principal: { tenant: 'default', id: 'anonymous', scopes: ['*'] },
  config: { modalities: ['text'] },
  duplex: true,
  persist: true,
  onDetach: 'continue',
}

/** Does it so often, some at a time. */
async function repeat(times: number, run: (n: number) => Promise<unknown>): Promise<void> {
  let next = 0
  const worker = async (): Promise<void> => {
    while (next < times) await run(next++)
  }
  await Promise.all(Array.from({ length: 50 }, worker))
}

let events = 0
async function respond(session: Session): Promise<void> {
  const reader = session.read({ after: session.lastSeq })
  const sent = [
    { type: 'input.text', event_id: `e${++events}`, text: 'is it so?' } as const,
    { type: 'response.create', event_id: `e${++events}` } as const,
  ]
  await Promise.all(sent.map((event) => session.send(event)))
  for await (const batch of reader) if (batch.has(ENDS)) break
  reader.close()
}

test('after a month of use nothing is left of it', { timeout: 60_000 + 100 * MANY }, async () => {
  const data = mkdtempSync(join(tmpdir(), 'uamp-test-'))
  onTestFinished(() => rmSync(data, { recursive: true, force: true, maxRetries: 5 }))
  // Intervals, too: uploads are looked at every ten minutes.
  vi.useFakeTimers({ toFake: ['Date', 'setInterval', 'clearInterval'] })
  onTestFinished(() => void vi.useRealTimers())
  const server = await startServer(brief, {
    data,
    limits: { unloadMs: 0, requestBurst: 10 * MANY },
    omnia: { limits: { uploadsPerPrincipal: 2 * MANY } },
  })
  const pool = new Pool(server.url, { connections: 50 })
  onTestFinished(() => pool.destroy())

  const call = async (method: 'POST' | 'PUT', path: string, body: object | string): Promise<string> => {
    const headers = { 'content-type': 'application/json', accept: 'text/event-stream, application/json', 'a2a-version': '1.0' }
    const response = await pool.request({ path, method, headers, body: typeof body === 'string' ? body : JSON.stringify(body) })
    const answer = await response.body.text()
    // Uploads come without a token, and so at most as often as an address may.
    if (response.statusCode === 429) return new Promise<void>((resolve) => setTimeout(resolve, 50)).then(() => call(method, path, body))
    if (response.statusCode >= 300) throw new Error(`${response.statusCode}: ${answer}`)
    return answer
  }
  const sizeOf = (name: string): number => statSync(join(data, name), { throwIfNoEntry: false })?.size ?? 0
  const stored = (): number => sizeOf('uamp.db') + sizeOf('uamp.db-wal')
  const uploads = (): number => readdirSync(join(data, 'blobs')).length

  const named = async (n: number): Promise<void> => {
    const session = await server.gateway.open({ ...init, alias: { protocol: 'test', id: `name ${n}` } })
    await respond(session)
    await session.release()
  }
  const run = (n: number) =>
    call('POST', '/ag-ui', { threadId: `t${n}`, runId: `r${n}`, messages: [{ id: 'u', role: 'user', content: 'is it so?' }] })
  const task = (n: number) => {
    const message = { messageId: `m${n}`, role: 'ROLE_USER', parts: [{ text: 'is it so?' }] }
    return call('POST', '/a2a', { jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message } })
  }
  const { id: session_id } = await server.gateway.open(init)
  const upload = async (n: number) => {
    const wanted = { session_id, filename: `${n}.txt`, mime_type: 'text/plain', size_bytes: 5 }
    const { upload_url } = JSON.parse(await call('POST', '/media/request-upload', wanted)) as { upload_url: string }
    const { pathname, search } = new URL(upload_url)
    return call('PUT', pathname + search, 'bytes')
  }

  await Promise.all([named(0), run(0), task(0), upload(0)])
  await server.gateway.sweep()
  const before = stored()

  await repeat(MANY, (n) => named(n + 1))
  await repeat(MANY, (n) => task(n + 1))
  await repeat(MANY, (n) => upload(n + 1))
  await repeat(100, (n) => run(n + 1))
  // More than are deleted at once.
  const long = await server.gateway.open(init)
  for (let n = 0; n < 1_500; n++) await respond(long)
  await long.release()
  expect(stored() - before).toBeGreaterThan((isLong ? 4 : 1) * MIB)
  expect(uploads()).toBe(MANY + 1)

  // Both clocks: one that leaps alone is doubted for a day.
  const ticks = performance.now.bind(performance)
  vi.spyOn(performance, 'now').mockImplementation(() => ticks() + 31 * DAY)
  vi.setSystemTime(Date.now() + 31 * DAY)
  vi.advanceTimersByTime(10 * 60_000)
  await server.gateway.sweep()
  await expect.poll(uploads, { timeout: 30_000 }).toBe(0)
  expect(stored()).toBeLessThanOrEqual(before + Math.max(before / 10, MIB))
  await server.close({ graceMs: 0 })
  expect(server.logged.filter(({ level }) => level === 'error')).toEqual([])
  const db = new Database(join(data, 'uamp.db'))
  const counts = TABLES.map((table) => [table, ...(db.prepare(`SELECT count(*) FROM ${table}`).raw().get() as [number])])
  db.close()
  // How often the server was started, and with which key it seals.
  expect(counts).toEqual(TABLES.map((table) => [table, table === 'records' ? 2 : 0]))
})
