import { EventEmitter, once } from 'node:events'
import { fstatSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'libsql'
import { afterAll, afterEach, describe, expect, onTestFinished, test } from 'vitest'
import { run } from '../../test/support/store-process.ts'
import { storeContract } from '../../test/contract/store.ts'
import { all } from '../../test/contract/store-streams.ts'
import type { Group, Store } from '../core/ports/store.ts'
import { sqliteStore, type SqliteStoreOptions } from './sqlite.ts'

const POSIX = process.platform !== 'win32'
const folder = mkdtempSync(join(tmpdir(), 'uamp-store-'))
const opened: Store[] = []
let files = 0

afterEach(async () => {
  await Promise.allSettled(opened.splice(0).map((store) => store.close()))
})
afterAll(() => rmSync(folder, { recursive: true }))

storeContract('sqlite', (now) => sqliteStore({ path: newPath(), now }))

describe('durability', () => {
  test('resolves a synced write only after a sync that began after its commit', async () => {
    const path = newPath()
    const disk = new EventEmitter()
    const logs: string[] = []
    const fdatasync = async () => {
      logs.push(readFileSync(`${path}-wal`, 'latin1'))
      disk.emit('sync begun')
      await once(disk, 'sync done')
    }
    const store = open({ path, fdatasync })
    const settled: string[] = []
    const note = (name: string, write: Promise<unknown>) => write.then(() => settled.push(name))

    const first = note('first', store.append('s', group(1, 'first-text'), { sync: true }))
    await once(disk, 'sync begun')
    expect(logs[0]).toContain('first-text')

    const second = note('second', store.set('k', 'second-text', { sync: true }))
    await store.append('s', group(2, 'unsynced-text'))
    const third = note('third', store.batch([{ op: 'append', stream: 's', group: group(3, 'third-text') }], { sync: true }))
    await expect(store.set('k', 1, { ifVersion: 0, sync: true })).rejects.toMatchObject({ code: 'conflict' })
    expect(await store.last('s')).toBe(3)
    expect(settled).toEqual([])
    expect(logs).toHaveLength(1)

    disk.emit('sync done')
    await once(disk, 'sync begun')
    expect(settled).toEqual(['first'])
    expect(logs[1]).toContain('second-text')
    expect(logs[1]).toContain('third-text')

    disk.emit('sync done')
    await Promise.all([first, second, third])
    expect(logs).toHaveLength(2)
  })

  test('copies the log into the database between two syncs, and commits nothing meanwhile', async () => {
    const path = newPath()
    const disk = new EventEmitter()
    const fdatasync = async (fd: number) => {
      disk.emit('sync begun', fstatSync(fd).ino === statSync(path).ino ? 'database' : 'log')
      await once(disk, 'sync done')
    }
    const store = open({ path, fdatasync })
    await store.append('s', group(1, 'x'.repeat(3_000_000)))
    let appended = false
    const next = store.append('s', group(2)).then(() => (appended = true))

    expect(await once(disk, 'sync begun')).toEqual(['log'])
    expect(statSync(path).size).toBeLessThan(3_000_000)
    disk.emit('sync done')

    expect(await once(disk, 'sync begun')).toEqual(['database'])
    expect(statSync(path).size).toBeGreaterThan(3_000_000)
    await new Promise((resolve) => setImmediate(resolve))
    expect(appended).toBe(false)
    disk.emit('sync done')

    await next
    expect((await all(store.read('s'))).map(({ last }) => last)).toEqual([1, 2])
  })

  test.each(['log', 'database'])('writes nothing more once a sync of the %s has failed', async (file) => {
    const path = newPath()
    const errors: unknown[] = []
    let fails = true
    const fdatasync = async (fd: number) => {
      const synced = fstatSync(fd).ino === statSync(path).ino ? 'database' : 'log'
      if (fails && synced === file) throw new Error('EIO')
    }
    const store = sqliteStore({ path, fdatasync, onError: (error) => errors.push(error) })
    await store.append('s', group(1, 'x'.repeat(3_000_000)))
    await expect(store.set('k', 1, { sync: true })).rejects.toMatchObject({ code: 'internal', cause: { message: 'EIO' } })
    fails = false
    await expect(store.set('k', 2, { sync: true })).rejects.toMatchObject({ code: 'internal' })
    await expect(store.set('k', 3)).rejects.toMatchObject({ code: 'internal' })
    expect(errors).toMatchObject([{ code: 'internal' }])
    await expect(store.close()).rejects.toMatchObject({ code: 'internal' })
    expect(statSync(`${path}-wal`).size).toBeGreaterThan(3_000_000)
  })

  test('finds everything that was resolved after a kill -9', async () => {
    const path = newPath()
    const child = run(`
      const store = sqliteStore({ path: ${JSON.stringify(path)} })
      const groups = Array.from({ length: 700 }, (_, at) => ({ first: at + 1, last: at + 1, text: 'text ' + at }))
      await Promise.all(groups.map((group) => store.append('s', group)))
      await store.set('k', 1, { index: [['i', 'a']] })
      await store.append('s', { first: 701, last: 705, text: 'synced' }, { expected: 700, sync: true })
      process.send({ version: await store.set('k', 2, { index: [['i', 'b']] }) })
    `)
    const [{ version }] = (await once(child, 'message')) as [{ version: number }]
    child.kill('SIGKILL')
    await once(child, 'exit')

    const store = open({ path })
    const groups = await all(store.read('s'))
    expect(groups).toHaveLength(701)
    expect(groups.at(-1)).toEqual({ first: 701, last: 705, text: 'synced' })
    expect(await store.get('k')).toEqual({ value: 2, version })
    expect((await store.list('i', {})).items).toEqual([{ key: 'k', value: 2 }])
    await store.delete('k')
    expect(await store.set('k', 3)).toBeGreaterThan(version)
    await store.append('s', group(706), { expected: 705 })
  })

  test('finds everything after a close, in a file that is free at once', async () => {
    const path = join(newPath(), 'data.db')
    let store = open({ path })
    const version = await store.set('k', 1, { index: [['i', 'a']] })
    await store.append('s', group(1))
    await store.close()
    expect(readdirSync(join(path, '..'))).toEqual(['data.db', 'data.db-mark'])
    store = open({ path })
    expect(await store.get('k')).toEqual({ value: 1, version })
    expect(await all(store.read('s'))).toEqual([group(1)])
    expect(await store.set('l', 1)).toBeGreaterThan(version)
  })
})

describe('what cannot be written', () => {
  test('fails alone', async () => {
    const store = open({ path: newPath() })
    const outcomes = await Promise.allSettled([
      store.append('s', group(1)),
      store.set('k', undefined as never),
      store.append('s', group(2), { expected: 1 }),
      store.batch([
        { op: 'append', stream: 's', group: group(3) },
        { op: 'set', key: 'k', value: undefined as never },
      ]),
      store.append('s', group(3), { expected: 2 }),
    ])
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'rejected', 'fulfilled'])
    expect(outcomes[1]).toMatchObject({ reason: { code: 'internal', message: 'The store could not write' } })
    expect(await all(store.read('s'))).toEqual([group(1), group(2), group(3)])
    expect(await store.get('k')).toBeUndefined()
  })

  test.skipIf(!POSIX)('for want of space, leaves the store usable', async () => {
    const path = newPath()
    const child = run(
      `
      const store = sqliteStore({ path: ${JSON.stringify(path)} })
      await store.append('s', { first: 1, last: 1, text: 'before' })
      const outcomes = await Promise.allSettled([
        store.append('s', { first: 2, last: 2, text: 'x'.repeat(8_000_000) }),
        store.append('t', { first: 1, last: 1, text: 'beside' }),
      ])
      await store.append('s', { first: 2, last: 2, text: 'after' }, { expected: 1, sync: true })
      const texts = []
      for await (const { text } of store.read('s')) texts.push(text)
      await store.close()
      process.send({ outcomes: outcomes.map(({ status }) => status), code: outcomes[0].reason?.code, texts })
    `,
      'ulimit -f 8192',
    )
    const [message] = (await once(child, 'message')) as [unknown]
    expect(message).toMatchObject({ outcomes: ['rejected', 'fulfilled'], texts: ['before', 'after'] })
  })
})

describe('the file', () => {
  test('belongs to one process', async () => {
    const path = newPath()
    const child = run(`
      const store = sqliteStore({ path: ${JSON.stringify(path)} })
      process.send('open')
      await new Promise((resolve) => process.once('message', resolve))
      await store.close()
      process.disconnect()
    `)
    await once(child, 'message')
    expect(() => open({ path })).toThrow(
      expect.objectContaining({ code: 'conflict', message: expect.stringContaining(`${path} is in use by another server`) as string }),
    )
    child.send('close')
    await once(child, 'exit')
    await open({ path }).set('k', 1)
  })

  test('belongs to one store of a process, which a second attempt does not cost its lock', async () => {
    const path = newPath()
    open({ path })
    expect(() => open({ path })).toThrow(expect.objectContaining({ code: 'conflict' }))
    const child = run(`
      try {
        sqliteStore({ path: ${JSON.stringify(path)} })
        process.send('opened')
      } catch ({ code }) {
        process.send(code)
      }
    `)
    const [message] = (await once(child, 'message')) as [unknown]
    expect(message).toBe('conflict')
  })

  test.skipIf(!POSIX)('is readable by its owner only, and so is its folder', async () => {
    const path = join(newPath(), 'deep', 'data.db')
    await open({ path }).set('k', 1)
    const modes = [join(path, '..'), path, `${path}-wal`].map((name) => (statSync(name).mode & 0o777).toString(8))
    expect(modes).toEqual(['700', '600', '600'])
  })

  test('is refused when it is not a database', () => {
    const path = newPath()
    writeFileSync(path, 'This is a letter to a friend.\n'.repeat(200))
    expect(() => open({ path })).toThrow(
      expect.objectContaining({ code: 'internal', message: expect.stringContaining(`${path} is damaged or not a database`) as string }),
    )
  })

  test('is refused when it cannot be opened', () => {
    const message = expect.stringContaining('cannot be opened') as string
    expect(() => open({ path: folder })).toThrow(expect.objectContaining({ code: 'internal', message }))
    const path = newPath()
    writeFileSync(path, '')
    expect(() => open({ path: join(path, 'data.db') })).toThrow(
      expect.objectContaining({ code: 'invalid_request', message: expect.stringContaining(`${path} is not a folder`) as string }),
    )
  })

  test('is refused when a newer version wrote it', async () => {
    const path = newPath()
    await open({ path }).close()
    execute(path, 'PRAGMA user_version = 99')
    expect(() => open({ path })).toThrow(
      expect.objectContaining({ code: 'version_mismatch', message: expect.stringContaining('newer version of uamp (format 99') as string }),
    )
  })

  test('is marked when this version opens it, so that an older one does not misread what is written now', async () => {
    const path = newPath()
    await open({ path }).close()
    execute(path, 'PRAGMA user_version = 2')
    await open({ path }).close()
    const db = new Database(path)
    onTestFinished(() => void db.close())
    expect(db.prepare('PRAGMA user_version').raw().get()).toEqual([3])
  })

  test('is refused when it is the database of something else', () => {
    const path = newPath()
    execute(path, 'CREATE TABLE other (a)')
    expect(() => open({ path })).toThrow(expect.objectContaining({ code: 'conflict' }))
  })
})

test('a stream or record of an earlier run was said to be new', async () => {
  const path = newPath()
  const before = open({ path })
  await before.append('s', group(1))
  await before.set('k', 1)
  await before.close()
  const store = open({ path })
  const outcomes = await Promise.allSettled([
    store.append('t', group(1), { expected: 0 }),
    store.append('s', group(1), { expected: 0 }),
    store.append('s', group(2), { expected: 1 }),
    store.set('k', 2, { ifVersion: 0 }),
    store.set('l', 2, { ifVersion: 0 }),
  ])
  expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'rejected', 'fulfilled'])
  expect(await all(store.read('s'))).toEqual([group(1), group(2)])
  expect((await store.get('k'))?.value).toBe(1)
})

test('deletes expired records and dropped streams as it goes', async () => {
  const path = newPath()
  let time = 0
  const errors: unknown[] = []
  const store = open({ path, now: () => time, onError: (error) => errors.push(error) })
  await Promise.all(
    Array.from({ length: 500 }, (_, at) =>
      store.set(`k${at}`, at, {
        ttlMs: 10,
        index: [
          ['i', 'a'],
          ['j', 'b'],
        ],
      }),
    ),
  )
  await Promise.all(Array.from({ length: 700 }, (_, at) => store.append('s', group(at + 1))))
  await store.append('kept', group(1))
  await store.drop('s')
  for (let writes = 0; writes < 20; writes++) {
    time += 5_000
    await store.set('kept', writes, { index: [['i', 'z']] })
  }
  await store.close()
  expect(errors).toEqual([])
  const counts = ['records', 'entries', 'groups', 'group_index', 'streams'].map((table) => count(path, table))
  expect(counts).toEqual([1, 1, 1, 1, 1])
  const again = open({ path })
  await again.append('kept', group(2))
  expect(await all(again.read('kept'))).toEqual([group(1), group(2)])
})

test('remembers more streams than it keeps in memory', async () => {
  const store = open({ path: newPath() })
  const names = Array.from({ length: 9_000 }, (_, at) => `s${at}`)
  await Promise.all(names.map((name) => store.append(name, group(1), { expected: 0 })))
  await Promise.all(names.map((name) => store.append(name, group(2), { expected: 1 })))
  expect(await all(store.read('s0'))).toEqual([group(1), group(2)])
  expect(await store.last('s8999')).toBe(2)
})

function newPath(): string {
  return join(folder, `${files++}`)
}

function open(options: SqliteStoreOptions): Store {
  const store = sqliteStore(options)
  opened.push(store)
  return store
}

function count(path: string, table: string): number {
  const db = new Database(path)
  const [rows] = db.prepare(`SELECT count(*) FROM ${table}`).raw().get() as [number]
  db.close()
  return rows
}

function execute(path: string, sql: string): void {
  const db = new Database(path)
  db.exec(sql)
  db.close()
}

function group(at: number, text = `text ${at}`): Group {
  return { first: at, last: at, text }
}
