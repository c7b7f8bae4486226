import { createHash } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { serve, type RunningServer } from '../../src/serve/index.ts'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { text } from '../../src/core/agent-kit/drafts.ts'
import { storeKey } from '../../src/core/basics/store-key.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import { TRUSTING } from '../support/money.ts'

export const short = (secret: string): string => createHash('sha256').update(secret).digest('hex').slice(0, 8)

/** Takes a payment, says which one it was, and then asks the client's tool where it is told to. */
const bot = defineAgent('bot', async function* (turn) {
  const said = turn.messages.findLast(({ role }) => role === 'user')?.content ?? ''
  if (!said.includes('pay')) return yield text('nothing to pay')
  if (said.includes('first')) yield text('first this. ')
  const { payment } = await turn.ask('payment.required', { requirements: { amount: '1', currency: 'USD' } })
  yield text(`paid by ${short(payment.token ?? JSON.stringify(payment.proof))}. `)
  if (!said.includes('tool')) return
  const { result } = await turn.ask('tool.call', { name: 'weather', arguments: '{}', call_id: 'call_1' })
  yield text(`the tool said ${result}`)
})

export function folder(): string {
  const made = mkdtempSync(join(tmpdir(), 'uamp-at-rest-'))
  onTestFinished(() => rmSync(made, { recursive: true, force: true }))
  return made
}

export async function start(data: string): Promise<RunningServer & { readonly errors: string[] }> {
  const errors: string[] = []
  const log = (level: string, message: string, fields?: object): void => {
    if (level === 'error') errors.push(`${message} ${String(Object.values(fields ?? {}))}`)
  }
  const server = await serve(bot, { port: 0, data, log, outbound: { allow: ['127.0.0.1'] }, payments: TRUSTING })
  let closing: Promise<void> | undefined
  const close = (): Promise<void> => (closing ??= server.close({ graceMs: 0 }))
  onTestFinished(close)
  return { ...server, close, errors }
}

/** Every byte of every file, but of the key. */
function bytesIn(data: string): Buffer {
  const files = readdirSync(data, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile() && entry.name !== 'uamp.key')
  expect(files.map(({ name }) => name)).toContain('uamp.db')
  return Buffer.concat(files.map((entry) => readFileSync(join(entry.parentPath, entry.name))))
}

/** The secrets that are there in any form. */
export function found(data: string, secrets: readonly string[]): string[] {
  const bytes = bytesIn(data)
  return secrets.filter((secret) =>
    [
      secret,
      encodeURIComponent(secret),
      Buffer.from(secret).toString('base64').slice(0, 20),
      Buffer.from(`x${secret}`).toString('base64').slice(2, 20),
      Buffer.from(`xx${secret}`).toString('base64').slice(3, 20),
    ].some((form) => bytes.includes(form)),
  )
}

let made = 0
/** A secret of its own for each place, so that it can be told which one is not kept well. */
export const secret = (where: string): string => `SECRET-${where}-${++made}-9f8e7d6c5b4a`

export const rpc = (method: string, params: object) => ({ jsonrpc: '2.0', id: 1, method, params })
export const oneOh = (message: object, more: object = {}) =>
  rpc('SendMessage', { message: { messageId: crypto.randomUUID(), role: 'ROLE_USER', ...message }, ...more })
export const idIn = (answer: string, pattern: RegExp): string => pattern.exec(answer)?.[1] ?? expect.fail(`No ${pattern} in ${answer}`)

/** Texts of records that the server's store has and that hold one of these. The server is stopped for it. */
export async function rows(server: RunningServer, data: string, texts: readonly string[]): Promise<number> {
  await server.close()
  const { default: Database } = await import('libsql')
  const db = new Database(join(data, 'uamp.db'))
  const tables = db.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").all() as { name: string }[]
  const all = tables.flatMap(({ name }) => (db.prepare(`SELECT * FROM "${name}"`).all() as object[]).map((row) => [name, row] as const))
  db.close()
  const hit = all.filter(([, row]) => texts.some((text) => Object.values(row).some((value) => String(value).includes(text))))
  return hit.filter(([, row]) => !JSON.stringify(row).includes('sealed-with')).length
}

export const sealedIn = (server: RunningServer, data: string): Promise<number> => rows(server, data, ['uamp-sealed'])

/** Where a task of A2A stands. The server is stopped for it. */
export async function taskIn(server: RunningServer, data: string, taskId: string): Promise<{ session: string; turn: string }> {
  await server.close()
  const store = sqliteStore({ path: join(data, 'uamp.db') })
  const stored = await store.get(storeKey('default', 'a2a-task', 'anonymous', taskId))
  await store.close()
  const { steps } = stored?.value as unknown as { steps: { session: string; turn: string }[] }
  return steps[0] ?? expect.fail('There is no step')
}
