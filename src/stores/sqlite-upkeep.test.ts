import { once } from 'node:events'
import { copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'libsql'
import { expect, onTestFinished, test } from 'vitest'
import { run } from '../../test/support/store-process.ts'
import type { Store } from '../core/ports/store.ts'
import { sqliteStore } from './sqlite.ts'

const SECRET = 'the word is swordfish'

function newPath(): string {
  const folder = mkdtempSync(join(tmpdir(), 'uamp-store-'))
  onTestFinished(() => rmSync(folder, { recursive: true, maxRetries: 5 }))
  return join(folder, 'uamp.db')
}

function open(path: string): Store {
  const store = sqliteStore({ path, onError: (error) => expect.unreachable(String(error)) })
  onTestFinished(() => store.close())
  return store
}

async function tidy(store: Store): Promise<void> {
  while (await store.tidy());
}

/** The content of a database and of all files beside it. */
function onDisk(path: string): string {
  const folder = join(path, '..')
  return readdirSync(folder)
    .map((name) => readFileSync(join(folder, name), 'latin1'))
    .join()
}

/** A file as version 0.1 made it. */
function oldFile(path: string, rows: number): void {
  const db = new Database(path)
  db.exec(`
    CREATE TABLE marks (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
    CREATE TABLE streams (id INTEGER PRIMARY KEY, name TEXT UNIQUE);
    CREATE TABLE groups (id INTEGER PRIMARY KEY, stream INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL, text NOT NULL);
    CREATE TABLE group_index (stream INTEGER, last INTEGER, id INTEGER NOT NULL, PRIMARY KEY (stream, last)) WITHOUT ROWID;
    CREATE TABLE records (
      id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, value TEXT NOT NULL, version INTEGER NOT NULL, expires INTEGER, places TEXT
    );
    CREATE INDEX records_expires ON records (expires) WHERE expires IS NOT NULL;
    CREATE TABLE record_index (name TEXT, sort TEXT, key TEXT, PRIMARY KEY (name, sort, key)) WITHOUT ROWID;
    INSERT INTO marks VALUES ('indexed', 0), ('version', 0);
    PRAGMA application_id = ${0x75616d70};
    PRAGMA user_version = 1;
    INSERT INTO streams VALUES (1, 's');
    WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < ${rows})
      INSERT INTO groups SELECT i, 1, i, i, '${SECRET}' || i || hex(zeroblob(500)) FROM n;
    DELETE FROM groups WHERE id % 2 = 0;
  `)
  db.close()
}

test('text that was deleted stayed in the file and in its log', async () => {
  const path = newPath()
  const store = open(path)
  for (let n = 1; n <= 200; n++) {
    await store.append('s', { first: n, last: n, text: `${SECRET}${'x'.repeat(n * 100)}` })
    await store.set(`k${n}`, { text: SECRET, more: 'x'.repeat(n * 100) }, { index: [[`i${SECRET}`, 'a']] })
  }
  expect(onDisk(path)).toContain(SECRET)
  await store.drop('s')
  for (let n = 1; n <= 200; n++) await store.delete(`k${n}`)
  await tidy(store)
  expect(onDisk(path)).not.toContain(SECRET)
})

test('the file never became smaller', async () => {
  const path = newPath()
  const store = open(path)
  await store.set('stays', 'here')
  await tidy(store)
  for (let n = 1; n <= 2000; n++) void store.append('s', { first: n, last: n, text: 'x'.repeat(5000) })
  expect(await store.last('s')).toBe(2000)
  await store.drop('s')
  await tidy(store)
  expect(statSync(path).size + statSync(`${path}-wal`).size).toBeLessThan(1024 * 1024)
  expect((await store.get('stays'))?.value).toBe('here')
})

test('a file of version 0.1 becomes one that can shrink, and what was deleted in it is gone', async () => {
  const path = newPath()
  oldFile(path, 4000)
  const before = statSync(path).size
  const store = open(path)
  expect(statSync(path).size).toBeLessThan(0.7 * before)
  expect(onDisk(path)).not.toContain(`${SECRET}4000`)
  const texts: string[] = []
  for await (const { text } of store.read('s')) texts.push(text)
  expect(texts).toHaveLength(2000)
  for await (const { key, bytes } of store.scan()) {
    expect(key).toBe('s')
    expect(bytes).toBe(texts.reduce((sum, text) => sum + text.length, 0))
  }
  await store.drop('s')
  await tidy(store)
  expect(statSync(path).size).toBeLessThan(512 * 1024)
})

/** A file of format 2 with records in two indexes. */
function fileOfFormat2(path: string, records: number): void {
  oldFile(path, 1)
  const db = new Database(path)
  db.exec(`
    ALTER TABLE streams ADD COLUMN bytes INTEGER;
    INSERT INTO marks VALUES ('weighed', 0);
    PRAGMA user_version = 2;
    WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < ${records})
      INSERT INTO records SELECT i, 'a/k/' || i, i, 1, NULL, json_array(json_array('i', printf('%06d', i % 1000)), json_array('j', '' || i)) FROM n;
    INSERT INTO record_index SELECT p.value ->> 0, p.value ->> 1, r.key FROM records r, json_each(r.places) p;
  `)
  db.close()
}

async function assertMoved(path: string, records: number): Promise<void> {
  const store = open(path)
  expect([await store.count('i'), await store.count('j')]).toEqual([records, records])
  const { items } = await store.list('i', { limit: records })
  expect(new Set(items.map(({ key }) => key)).size).toBe(records)
  expect(items.map(({ value }) => Number(value) % 1000)).toEqual(items.map(({ value }) => Number(value) % 1000).toSorted((a, b) => a - b))
  await store.set('a/k/1', 'new', { index: [['j', '1']] })
  await store.delete('a/k/2')
  expect([await store.count('i'), await store.count('j')]).toEqual([records - 2, records - 1])
  expect((await store.list('j', { limit: 2 })).items.map(({ key }) => key)).toEqual(['a/k/1', 'a/k/10'])
  await store.close()
}

test('the entries of a file of format 2 move, and records that it wrote move and leave their indexes', async () => {
  const path = newPath()
  fileOfFormat2(path, 25_000)
  await assertMoved(path, 25_000)
  const left = `SELECT count(*) FROM sqlite_schema WHERE name = 'record_index'`
  expect(numbers(path, left, 'SELECT count(*) FROM entries')).toEqual([0, 25_000 * 2 - 3])
})

test('a file whose entries have moved in part goes on, and older versions refuse it', async () => {
  const path = newPath()
  fileOfFormat2(path, 25_000)
  // The second step fails, as if the process had died there.
  execute(path, `CREATE TRIGGER stop BEFORE DELETE ON record_index WHEN old.name = 'j' BEGIN SELECT RAISE(ABORT, 'stop'); END`)
  // The driver keeps a lock in the process that failed.
  const child = run(`try { sqliteStore({ path: ${JSON.stringify(path)} }) } catch ({ cause }) { process.send(cause.message) }`)
  const [reason] = (await once(child, 'message')) as [unknown]
  expect(reason).toBe('stop')
  child.kill('SIGKILL')
  await once(child, 'exit')
  expect(numbers(path, 'SELECT count(*) FROM entries', 'SELECT count(*) FROM record_index', 'PRAGMA user_version')).toEqual([
    20_000, 30_000, 3,
  ])
  execute(path, 'DROP TRIGGER stop')
  await assertMoved(path, 25_000)
})

test.each([1, 2, 3])('a process that is killed while it moves entries, with %i MiB in the log, loses none', async (mebibytes) => {
  const path = newPath()
  fileOfFormat2(path, 30_000)
  const child = run(`sqliteStore({ path: ${JSON.stringify(path)} }); process.send('open')`)
  const log = () => statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0
  let over = false
  for (const event of ['message', 'exit']) child.once(event, () => (over = true))
  while (!over && log() < mebibytes * 1024 * 1024) await new Promise((resolve) => setImmediate(resolve))
  expect(child.exitCode).toBeNull()
  child.kill('SIGKILL')
  await once(child, 'exit')
  await assertMoved(path, 30_000)
})

function execute(path: string, sql: string): void {
  const db = new Database(path)
  db.exec(sql)
  db.close()
}

/** Asks a copy, because the driver locks a file until all statements are garbage-collected. */
function numbers(path: string, ...queries: readonly string[]): number[] {
  const copy = newPath()
  for (const name of readdirSync(join(path, '..'))) copyFileSync(join(path, '..', name), join(copy, '..', name))
  const db = new Database(copy)
  const found = queries.map((sql) => (db.prepare(sql).raw().get() as [number])[0])
  db.close()
  return found
}
