import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { noSmallDisk, onSmallDisk } from '../support/small-disk.ts'
import { finished, project, serving } from './run.ts'

const status = async (url: string): Promise<number> => (await fetch(url)).status

async function say(url: string, text: string, session?: string) {
  const headers = session === undefined ? {} : { 'x-session-id': session }
  const input = { type: 'input.text', text }
  const body = JSON.stringify(session === undefined ? [{ type: 'session.create' }, input] : [input])
  const response = await fetch(`${url}/events`, { method: 'POST', headers, body })
  return { status: response.status, session: response.headers.get('x-session-id') ?? '', text: await response.text() }
}

test('a full disk: the server is not ready, refuses what it cannot keep, and goes on when there is room again', async ({ skip }) => {
  const reason = noSmallDisk()
  if (reason !== undefined) skip(reason)
  const { url, fill, free, output } = await onSmallDisk()
  const { session } = await say(url, 'before')
  expect(await status(`${url}/ready`)).toBe(200)

  fill()
  // SQLite reuses the space that its log has already, so some writes may still fit.
  await expect.poll(async () => (await say(url, 'x'.repeat(100_000), session)).status).toBe(503)
  expect((await say(url, 'x'.repeat(100_000), session)).text).toContain('"overloaded"')
  await expect.poll(() => status(`${url}/ready`), { timeout: 10_000 }).toBe(503)
  expect(await status(`${url}/health`)).toBe(200)
  await expect.poll(output).toContain('The store cannot be written: the server is not ready')

  free()
  await expect.poll(() => status(`${url}/ready`), { timeout: 10_000 }).toBe(200)
  expect((await say(url, 'after', session)).status).toBe(202)
  await expect.poll(output).toContain('The store can be written again')
})

test('a database that was deleted under the server: it is not ready', async () => {
  const cwd = await project()
  const { url } = await serving(['--data', 'd'], { cwd })
  await say(url, 'hello')
  expect(await status(`${url}/ready`)).toBe(200)
  await rm(join(cwd, 'd/uamp.db'))
  await expect.poll(() => status(`${url}/ready`), { timeout: 10_000 }).toBe(503)
})

/** A project whose server was killed, and whose write-ahead log is gone since. */
async function withoutLog(): Promise<string> {
  const cwd = await project()
  const { cli, url } = await serving(['--data', 'd'], { cwd })
  expect((await say(url, 'hello')).status).toBe(201)
  cli.signal('SIGKILL')
  await cli.exit()
  await rm(join(cwd, 'd/uamp.db-wal'))
  return cwd
}

test('a write-ahead log that was lost after a kill is told at the next start', async () => {
  const cwd = await withoutLog()
  const again = await serving(['--data', 'd'], { cwd })
  expect(await again.cli.prints(/"level":50.*Data is missing: \S*uamp\.db-wal is missing/)).toBeDefined()
})

test('a database that cannot be started with is named, and what to do about it', async () => {
  const cwd = await project()
  const { cli, url } = await serving(['--data', 'd'], { cwd })
  for (let n = 0; n < 20; n++) await say(url, `${n}`.repeat(5_000))
  await cli.signalUntilExit('SIGTERM')
  const path = join(cwd, 'd/uamp.db')
  const pages = await readFile(path)
  // Behind the tables' own: it is found out only when their rows are looked for.
  await writeFile(path, pages.fill(0xa5, 10 * 4096))
  const { code, stderr } = await finished(['serve', '--port', '0', '--data', 'd'], { cwd })
  expect(stderr).toMatch(/^error: \S*uamp\.db is damaged or not a database: move it away/)
  expect(code).toBe(1)
})

test('`uamp store` took a loss for itself, and told nobody', async () => {
  const cwd = await withoutLog()
  const shown = await finished(['store', 'show', '--data', 'd'], { cwd })
  expect(shown).toMatchObject({ code: 0, stderr: expect.stringMatching(/error: Data is missing: \S*uamp\.db-wal is missing/) })
})
