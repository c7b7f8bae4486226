import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'libsql'
import { expect, onTestFinished, test } from 'vitest'
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
