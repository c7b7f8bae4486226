import { cpSync, fdatasync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { UampError } from '../protocol/errors.ts'
import { sqliteStore } from './sqlite.ts'

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'uamp-mark-'))
  onTestFinished(() => rmSync(path, { recursive: true }))
  return path
}

async function opened(from: string): Promise<{ losses: string[]; store: ReturnType<typeof sqliteStore> }> {
  const losses: string[] = []
  const store = sqliteStore({ path: join(from, 'a.db'), onLoss: (loss) => losses.push(loss) })
  onTestFinished(() => store.close().catch(() => undefined))
  return { losses, store }
}

/** A folder as `kill -9` leaves it after acknowledged writes. */
async function killed(): Promise<string> {
  const [live, left] = [folder(), folder()]
  const { store } = await opened(live)
  await store.set('a', 'x'.repeat(10_000), { sync: true })
  // Marks keep a distance: of two syncs in quick succession only the first may be marked.
  await store.append('s', { first: 1, last: 1, text: 'y'.repeat(10_000) }, { sync: true })
  cpSync(live, left, { recursive: true })
  return left
}

test('says nothing of a new folder, after a close, after a kill, and of a folder that an earlier version wrote', async () => {
  const path = folder()
  const first = await opened(path)
  await first.store.set('a', 1, { sync: true })
  await first.store.close()
  const second = await opened(path)
  await second.store.close()
  const third = await opened(await killed())
  expect(await third.store.get('a')).toBeDefined()
  const older = await killed()
  rmSync(join(older, 'a.db-mark'))
  const fourth = await opened(older)
  expect([first, second, third, fourth].flatMap(({ losses }) => losses)).toEqual([])
})

test('a file that was refused after a kill is whole, free and no loss', async () => {
  const from = await killed()
  const admit = () => {
    throw new UampError('conflict', 'Not this one')
  }
  expect(() => sqliteStore({ path: join(from, 'a.db'), admit })).toThrow('Not this one')
  const { losses, store } = await opened(from)
  expect(losses).toEqual([])
  expect(await store.get('a')).toBeDefined()
})

test.each<[string, (from: string) => void, RegExp]>([
  ['its log is missing', (from) => rmSync(join(from, 'a.db-wal')), /a\.db-wal is missing: the server was not shut down/],
  ['its log is empty', (from) => truncateSync(join(from, 'a.db-wal')), /a\.db-wal is missing/],
  ['its log was cut', (from) => truncateSync(join(from, 'a.db-wal'), 50_000), /a\.db-wal has \d+ bytes, and had \d+/],
  [
    'the database is missing',
    (from) => ['a.db', 'a.db-wal'].forEach((name) => rmSync(join(from, name))),
    /a\.db is empty, and was not when the server last ran/,
  ],
])('says after a kill that %s, once', async (_, damage, message) => {
  const from = await killed()
  damage(from)
  const { losses, store } = await opened(from)
  expect(losses.join('\n')).toMatch(message)
  await store.set('b', 1, { sync: true })
  await store.close()
  expect((await opened(from)).losses).toEqual([])
})

test('says after a close that the database is empty, or a copy from before', async () => {
  const path = folder()
  const copy = folder()
  for (const run of [1, 2]) {
    const { store } = await opened(path)
    await store.set('a', run, { sync: true })
    await store.close()
    if (run === 1) cpSync(join(path, 'a.db'), join(copy, 'a.db'))
  }
  const mark = readFileSync(join(path, 'a.db-mark'))
  cpSync(join(copy, 'a.db'), join(path, 'a.db'))
  const older = await opened(path)
  expect(older.losses).toEqual([expect.stringContaining('is older than when the server last ran')])
  await older.store.close()
  writeFileSync(join(path, 'a.db'), '')
  writeFileSync(join(path, 'a.db-mark'), mark)
  expect((await opened(path)).losses).toEqual([expect.stringContaining('is empty, and was not')])
})

test('a log that was begun anew, a mark that is half-written and a close that was broken off are no loss', async () => {
  const grown = folder()
  const { store } = await opened(grown)
  // The log is copied into the database and restarted several times.
  for (let at = 1; at <= 5; at++) await store.append('s', { first: at, last: at, text: 'x'.repeat(3_000_000) }, { sync: true })
  const left = folder()
  cpSync(grown, left, { recursive: true })
  expect((await opened(left)).losses).toEqual([])
  const torn = await killed()
  truncateSync(join(torn, 'a.db-mark'), 20)
  expect((await opened(torn)).losses).toEqual([])
  const closing = folder()
  const closed = await opened(closing)
  await closed.store.set('a', 1, { sync: true })
  await closed.store.close()
  const mark = readFileSync(join(closing, 'a.db-mark'), 'utf8')
  writeFileSync(join(closing, 'a.db-mark'), mark.replace('"closed"', '"closing"'))
  expect((await opened(closing)).losses).toEqual([])
})

test('on a slow disk, a log that was emptied after a deletion was taken for lost', async () => {
  const [live, left] = [folder(), folder()]
  // Longer than the time between two marks.
  const slow = (fd: number) => promisify(fdatasync)(fd).then(() => pause(80))
  const store = sqliteStore({ path: join(live, 'a.db'), fdatasync: slow })
  onTestFinished(() => store.close())
  await store.set('a', 'x'.repeat(10_000), { sync: true })
  await store.delete('a')
  while (await store.tidy());
  cpSync(live, left, { recursive: true })
  expect((await opened(left)).losses).toEqual([])
})
