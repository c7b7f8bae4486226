import { closeSync, mkdtempSync, openSync, rmSync, statSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { all } from '../../test/contract/store-streams.ts'
import { sqliteStore, type SqliteStoreOptions } from './sqlite.ts'

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'uamp-probe-'))
  onTestFinished(() => rmSync(path, { recursive: true }))
  return path
}

function open(options: SqliteStoreOptions) {
  const store = sqliteStore(options)
  onTestFinished(() => store.close().catch(() => undefined))
  return { ...store, probe: async () => store.probe?.() }
}

test('a probe is a synced write that leaves nothing behind but itself', async () => {
  const path = join(folder(), 'a.db')
  let syncs = 0
  const store = open({ path, fdatasync: async () => void syncs++ })
  await store.probe()
  expect(syncs).toBe(1)
  for (let at = 0; at < 500; at++) await store.probe()
  await store.close()
  expect(statSync(path).size).toBeLessThan(200_000)
  await open({ path }).probe()
})

test('a disk that failed once is not trusted again', async () => {
  const store = open({
    path: join(folder(), 'a.db'),
    fdatasync: async () => {
      throw new Error('EIO')
    },
  })
  await expect(store.probe()).rejects.toMatchObject({ code: 'internal' })
  await expect(store.probe()).rejects.toMatchObject({ code: 'internal' })
})

test('a page that cannot be read is remembered, though others can be written', async () => {
  const path = join(folder(), 'a.db')
  const first = open({ path })
  for (let at = 1; at <= 200; at++) await first.append('s', { first: at, last: at, text: `${at} `.repeat(1_000) })
  await first.close()
  const file = openSync(path, 'r+')
  // Damages pages in the middle of the file, so that the tables are still found.
  writeSync(file, new Uint8Array(200_000).fill(0xa5), 0, 200_000, 200_704)
  closeSync(file)
  const store = open({ path })
  await store.probe()
  await expect(all(store.read('s'))).rejects.toThrow()
  await expect(store.probe()).rejects.toMatchObject({ code: 'internal', message: 'The database is damaged' })
})

test.skipIf(process.platform === 'win32').each(['', '-wal'])('a file that was deleted under the server is noticed: a.db%s', async (end) => {
  const path = join(folder(), 'a.db')
  const store = open({ path })
  await store.probe()
  rmSync(path + end)
  await expect(store.probe()).rejects.toThrow(`a.db${end} was deleted or replaced`)
})

test.skipIf(process.platform === 'win32').each(['', '-wal'])(
  'what went into a file that was deleted was acknowledged: a.db%s',
  async (end) => {
    const path = join(folder(), 'a.db')
    const store = open({ path })
    await store.set('a', 1, { sync: true })
    rmSync(path + end)
    await expect(store.set('b', 2, { sync: true })).rejects.toMatchObject({ code: 'internal' })
    // Nothing is stored until a new server finds out what is left.
    await expect(store.append('s', { first: 1, last: 1, text: 'x' })).rejects.toMatchObject({ code: 'internal' })
  },
)
