import { existsSync, readdirSync, statSync } from 'node:fs'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { OmniaClient } from '../omnia/omnia-client.ts'
import { say } from '../support/talk.ts'
import { overWebSocket } from '../support/wire.ts'
import { finished, project, serving } from './run.ts'

const ALICE = 'alice-has-a-long-secret'
const BOB = 'bob-has-a-long-secret-too'
const TOKENS = ['--token', `alice:${ALICE}`, '--token', `bob:${BOB}`]

interface Report {
  readonly bytes: number
  readonly kinds: Readonly<Record<string, { readonly count: number; readonly bytes: number; readonly oldest: number }>>
  readonly principals: readonly { readonly principal: string; readonly sessions: number; readonly bytes: number }[]
  readonly files: { readonly database: number; readonly uploads: { readonly count: number; readonly bytes: number } }
}

const store = (cwd: string, ...args: readonly string[]) => finished(['store', ...args, '--data', 'd'], { cwd })

async function report(cwd: string): Promise<Report> {
  const { code, stdout, stderr } = await store(cwd, 'show', '--json')
  expect(code, stderr).toBe(0)
  return JSON.parse(stdout) as Report
}

/** A session of theirs; the connection stays open. */
async function session(url: string, token: string, text = '/big 20000') {
  const wire = await overWebSocket(url, { token })
  await wire.open()
  await say(wire, text)
  return wire
}

async function upload(url: string): Promise<void> {
  const headers = { authorization: `Bearer ${BOB}` }
  const client = await OmniaClient.open(url, { headers })
  const upload_request = { filename: 'a.txt', mime_type: 'text/plain', size_bytes: 5 }
  const asked = await client.ask({ type: 'upload_request', session_id: client.sessionId, upload_request }, 'upload_ready')
  expect((await fetch(asked['upload_ready'].upload_url as string, { method: 'PUT', body: 'bytes', headers })).status).toBe(204)
  client.socket.close()
  await client.closed
}

test('what is stored is shown and removed, while a server runs and while none does', { timeout: 120_000 }, async () => {
  const cwd = await project()
  const { cli, url } = await serving(['--data', 'd', ...TOKENS], { cwd })
  const alice = await session(url, ALICE)
  const bob = await session(url, BOB)
  const again = await session(url, BOB, '/big 40000')
  again.close()
  await upload(url)

  const { stdout } = await store(cwd, 'show')
  expect(stdout).toMatch(/^d: \d+ [KM]B on disk, \d+ [KM]B in use; 1 upload with 5 B\n/)
  expect(stdout).toMatch(/^session +4 .* \d{4}-\d\d-\d\d \d\d:\d\d/m)
  expect(stdout).toMatch(/^alice +1 /m)
  expect(stdout).toMatch(/^bob +3 /m)
  const before = await report(cwd)
  expect(before.kinds).toMatchObject({ session: { count: 4 }, turn: { count: 3 }, 'omnia-upload': { count: 1 } })
  expect(before.principals.map(({ principal }) => principal)).toEqual(['bob', 'alice'])
  expect(before.principals[0]?.bytes).toBeGreaterThan(60_000)

  // Says what it would do, and does nothing.
  const dry = await store(cwd, 'prune', '--principal', 'bob')
  expect(dry.stdout).toMatch(/^This would remove 3 sessions and \d+ other records? with \d+ KB\. Add --yes/)
  expect((await report(cwd)).kinds).toMatchObject({ session: { count: 4 } })

  // Of bob's, one is in use.
  const pruned = await store(cwd, 'prune', '--principal', 'bob', '--yes')
  expect(pruned.stdout).toMatch(/^Removed 2 sessions and \d+ other records? with \d+ KB\.\n1 session stayed/)
  expect(await report(cwd)).toMatchObject({ kinds: { session: { count: 2 } }, files: { uploads: { count: 0 } } })
  await say(bob, 'still here?')
  alice.close()
  bob.close()
  await cli.signalUntilExit('SIGTERM')
  expect(readdirSync(join(cwd, 'd')).toSorted()).toEqual(['blobs', 'uamp.db', 'uamp.db-mark', 'uamp.key'])

  const size = statSync(join(cwd, 'd/uamp.db')).size
  expect(await store(cwd, 'prune', '--older-than', '1d', '--yes')).toMatchObject({ code: 0, stdout: expect.stringMatching(/^Removed 0 /) })
  expect((await store(cwd, 'prune', '--to-bytes', '0', '--yes')).stdout).toMatch(/^Removed 2 sessions/)
  const after = await report(cwd)
  expect(after).toMatchObject({ kinds: {}, principals: [] })
  expect(statSync(join(cwd, 'd/uamp.db')).size).toBeLessThanOrEqual(size)
})

test('a server that was killed leaves nothing in the way of the next', { timeout: 60_000 }, async () => {
  const cwd = await project()
  const first = await serving(['--data', 'd', ...TOKENS], { cwd })
  await session(first.url, ALICE)
  first.cli.signal('SIGKILL')
  await first.cli.exit()
  expect((await report(cwd)).principals).toMatchObject([{ principal: 'alice', sessions: 1 }])
  await serving(['--data', 'd', ...TOKENS], { cwd })
  expect((await report(cwd)).principals).toMatchObject([{ principal: 'alice', sessions: 1 }])
})

test('what cannot be done is told, and nothing is made', async () => {
  const cwd = await project()
  expect(await store(cwd, 'show')).toMatchObject({ code: 1, stderr: expect.stringContaining('There is no data in d: name the folder') })
  expect(existsSync(join(cwd, 'd'))).toBe(false)
  const { cli } = await serving(['--data', 'd'], { cwd })
  expect(await store(cwd, 'prune', '--yes')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('Choose what to remove: --older-than'),
  })
  await cli.signalUntilExit('SIGTERM')
  expect(await store(cwd, 'prune', '--yes')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('Choose what to remove: --older-than'),
  })
  const wrong = await store(cwd, 'prune', '--older-than', 'yesterday')
  expect(wrong).toMatchObject({ code: 1, stderr: expect.stringContaining('Write a time as 30d, 12h, 90m or 10s') })
  const size = await finished(['serve', '--keep-bytes', 'much'], { cwd })
  expect(size).toMatchObject({ code: 1, stderr: expect.stringContaining('Write a size as 500MB, 10GB') })
})

test('what windows of an IDE have stored in folders of their own is shown and removed, too, and a damaged one is named', async () => {
  const cwd = await project()
  const windows = ['d', 'd/windows/2', 'd/windows/4']
  const [, , last] = await Promise.all(
    windows.map(async (data) => {
      const { cli, url } = await serving(['--data', data, ...TOKENS], { cwd })
      const wires = [await session(url, ALICE), await session(url, BOB)]
      for (const wire of wires) wire.close()
      return cli
    }),
  )
  await mkdir(join(cwd, 'd/windows/3'), { recursive: true })
  await writeFile(join(cwd, 'd/windows/3/uamp.db'), 'no database'.repeat(1000))
  const damaged = expect.stringMatching(/windows\/3\/uamp\.db is damaged/)

  const shown = await store(cwd, 'show')
  expect(shown).toMatchObject({ code: 1, stderr: damaged })
  for (const data of windows) expect(shown.stdout).toMatch(new RegExp(`^${data}: .* in use`, 'm'))
  const pruned = await store(cwd, 'prune', '--principal', 'bob', '--yes')
  expect(pruned).toMatchObject({ code: 1, stderr: damaged, stdout: expect.stringMatching(/^Removed 3 sessions /) })
  await last?.signalUntilExit('SIGTERM')
  await rm(join(cwd, 'd/windows/3'), { recursive: true })
  const alice = { principals: [{ principal: 'alice', sessions: 1 }] }
  expect(await report(cwd)).toMatchObject({ folder: 'd', ...alice, windows: windows.slice(1).map((folder) => ({ folder, ...alice })) })
})
