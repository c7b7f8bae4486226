import { closeSync, mkdirSync, openSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname } from 'node:path'
import type Database from 'libsql'
import { UampError } from '../protocol/errors.ts'

export const APPLICATION_ID = 0x75616d70
export const SCHEMA_VERSION = 3

const ENTRIES = 'CREATE TABLE entries (name TEXT, sort TEXT, record INTEGER, PRIMARY KEY (name, sort, record)) WITHOUT ROWID;'

/**
 * `groups` is append-only and has no index of its own: an index page per stream would go to the log with every group, and cost more
 * than the group. `group_index` follows in batches, up to the mark `indexed`. Dropping a stream removes its name; its groups are
 * purged bit by bit. `streams.bytes` follows up to the mark `weighed`; it is null for streams of earlier versions. `records.places`
 * holds the record's entries in indexes as JSON: see `placesText`. An entry names its record by id, because keys are long.
 */
const SCHEMA = `
  CREATE TABLE marks (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
  CREATE TABLE streams (id INTEGER PRIMARY KEY, name TEXT UNIQUE, bytes INTEGER);
  CREATE TABLE groups (id INTEGER PRIMARY KEY, stream INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL, text NOT NULL);
  CREATE TABLE group_index (stream INTEGER, last INTEGER, id INTEGER NOT NULL, PRIMARY KEY (stream, last)) WITHOUT ROWID;
  CREATE TABLE records (
    id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, value TEXT NOT NULL, version INTEGER NOT NULL, expires INTEGER, places TEXT
  );
  CREATE INDEX records_expires ON records (expires) WHERE expires IS NOT NULL;
  ${ENTRIES}
  INSERT INTO marks VALUES ('indexed', 0), ('version', 0), ('weighed', 0);
  PRAGMA application_id = ${APPLICATION_ID};
  PRAGMA user_version = ${SCHEMA_VERSION};
`

export type Statement = Database.Statement<[readonly Bound[]]>
/** The driver binds numbers as REAL, so their columns need INTEGER affinity; a boolean makes it panic. */
export type Bound = number | string | Uint8Array | null

/** How much one step of a purge deletes; the row that exceeds it is the last. More would block the event loop for too long. */
export interface Portion {
  readonly rows: number
  readonly bytes: number
}

/** Looks at records, as JSON, before the file is changed. Throws to refuse the file. */
export type Admit = (record: (key: string) => string | undefined) => void

/** The only connection to the file, which it locks. */
export class Connection {
  readonly path: string
  /** Roughly the bytes added to the write-ahead log since it was last copied. */
  written = 0
  /** Data was deleted whose text may still be in the write-ahead log. */
  scrub = false
  readonly #db: Database.Database

  constructor(path: string, admit: Admit = () => {}) {
    this.path = path
    this.#db = open(path, admit)
  }

  get inTransaction(): boolean {
    return this.#db.inTransaction
  }

  /** A statement that returns nothing. */
  command(sql: string): Statement {
    return this.#db.prepare<[readonly Bound[]]>(sql)
  }

  /** A statement whose rows come as arrays: the driver adds a `_metadata` to row objects. */
  query(sql: string): Statement {
    return this.command(sql).raw()
  }

  /** Bytes of the pages in use. */
  get bytes(): number {
    return (pragma(this.#db, 'page_count') - pragma(this.#db, 'freelist_count')) * pragma(this.#db, 'page_size')
  }

  /** True if the file can shrink step by step. Files of version 0.1 cannot until they are rewritten. */
  get shrinks(): boolean {
    return pragma(this.#db, 'auto_vacuum') === INCREMENTAL
  }

  /** Returns some unused pages to the file system; false when there are few. Runs inside a transaction. */
  shrink(): boolean {
    const free = this.shrinks ? pragma(this.#db, 'freelist_count') - SPARE_PAGES : 0
    if (free <= 0) return false
    const pages = Math.min(free, SHRINK_PAGES)
    // With `exec`, because a prepared statement would stop after the first page.
    this.#db.exec(`PRAGMA incremental_vacuum(${pages})`)
    this.written += pages * 2 * pragma(this.#db, 'page_size')
    return true
  }

  /** Rewrites the whole file without unused pages. It takes seconds per gigabyte, and as much disk space again. */
  rewrite(): void {
    try {
      this.#db.exec('PRAGMA temp_store = FILE; PRAGMA auto_vacuum = INCREMENTAL; VACUUM; PRAGMA wal_checkpoint(TRUNCATE)')
    } finally {
      this.#db.exec('PRAGMA temp_store = MEMORY')
    }
  }

  /** Empties the write-ahead log after it was copied, because it still holds deleted data. */
  emptyLog(): void {
    try {
      this.#db.exec('PRAGMA synchronous = OFF; PRAGMA wal_checkpoint(TRUNCATE)')
    } finally {
      this.#db.exec('PRAGMA synchronous = NORMAL')
    }
  }

  /** Copies the write-ahead log into the database without a sync: see `WriteAheadLog.checkpoint`. */
  copyLog(): void {
    try {
      this.#db.exec('PRAGMA synchronous = OFF; PRAGMA wal_checkpoint(PASSIVE)')
    } finally {
      this.#db.exec('PRAGMA synchronous = NORMAL')
    }
  }

  /**
   * The driver keeps the file open and locked until every statement is garbage-collected. Leaving WAL mode releases the lock at once,
   * so that the file can be opened again.
   */
  close(): void {
    try {
      this.#db.exec(RELEASE)
    } finally {
      this.#db.close()
    }
  }
}

const RELEASE = 'PRAGMA wal_checkpoint(TRUNCATE); PRAGMA journal_mode = DELETE; PRAGMA locking_mode = NORMAL; SELECT 1 FROM marks'

/** Most rows that one statement writes. */
const MOST_ROWS = 32

/** An `INSERT` or `DELETE` of many rows. The statement for each number of rows is prepared when first needed. */
export class Rows {
  readonly #db: Connection
  readonly #sql: (rows: string) => string
  readonly #width: number
  readonly #statements = new Map<number, Statement>()

  constructor(db: Connection, width: number, sql: (rows: string) => string) {
    this.#db = db
    this.#width = width
    this.#sql = sql
  }

  /** `values` holds the columns of all rows in sequence. Returns how many rows were changed. */
  run(values: readonly Bound[]): number {
    const most = MOST_ROWS * this.#width
    if (values.length <= most) return values.length === 0 ? 0 : this.#write(values)
    let changes = 0
    for (let at = 0; at < values.length; at += most) changes += this.#write(values.slice(at, at + most))
    return changes
  }

  #write(values: readonly Bound[]): number {
    const rows = values.length / this.#width
    let statement = this.#statements.get(rows)
    if (!statement) {
      const row = `(${Array(this.#width).fill('?').join()})`
      statement = this.#db.command(this.#sql(Array(rows).fill(row).join()))
      this.#statements.set(rows, statement)
    }
    return statement.run(values).changes
  }
}

/** How many entries of an older file one transaction moves. */
const MOVE_ENTRIES = 10_000
/** The value of `PRAGMA auto_vacuum`. */
const INCREMENTAL = 2
/** Unused pages that stay for the next writes, and how many go in one step, which blocks the event loop for a millisecond or two. */
const SPARE_PAGES = 64
const SHRINK_PAGES = 32

/**
 * The lock and the log mode come first, because they show whether the file is usable. `auto_vacuum` must come before `journal_mode`,
 * which writes the first page of a new file. SQLite's own checkpoint runs only if ours cannot keep up.
 */
const SETTINGS = `
  PRAGMA busy_timeout = 0;
  PRAGMA locking_mode = EXCLUSIVE;
  PRAGMA auto_vacuum = INCREMENTAL;
  PRAGMA journal_mode = WAL;
  PRAGMA secure_delete = ON;
  PRAGMA synchronous = NORMAL;
  PRAGMA temp_store = MEMORY;
  PRAGMA wal_autocheckpoint = 8000;
  PRAGMA journal_size_limit = 33554432;
`

/**
 * Not a static import: it would be in every bundle of a server, also of one that keeps nothing, and a bundler cannot take along the
 * binary that it loads.
 */
function driver(): typeof Database {
  try {
    return createRequire(import.meta.url)('libsql') as typeof Database
  } catch (cause) {
    const message =
      'Sessions are kept by the package libsql, which cannot be loaded: install it here, or keep them in memory (data: "memory")'
    throw new UampError('not_supported', message, { cause })
  }
}

function open(path: string, admit: Admit): Database.Database {
  const Driver = driver()
  let db: Database.Database | undefined
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    create(path)
    db = new Driver(path)
    db.exec(SETTINGS)
    migrate(db, path, admit)
    return db
  } catch (thrown) {
    db?.close()
    throw explain(thrown, path)
  }
}

/**
 * Creates the file with its mode, which SQLite then gives to the log, too. It does not open an existing file: closing the descriptor
 * would drop the lock of another store in this process.
 */
function create(path: string): void {
  try {
    closeSync(openSync(path, 'wx', 0o600))
  } catch (thrown) {
    if (errorCode(thrown) !== 'EEXIST') throw thrown
  }
}

function migrate(db: Database.Database, path: string, admit: Admit): void {
  const version = pragma(db, 'user_version')
  const isOurs = pragma(db, 'application_id') === APPLICATION_ID
  if (isOurs && version <= SCHEMA_VERSION) {
    ask(db, admit)
    return upgrade(db)
  }
  if (isOurs) {
    const known = `format ${version}, this one knows ${SCHEMA_VERSION}`
    const message = `${path} was written by a newer version of uamp (${known}): update uamp, or choose another data folder`
    throw new UampError('version_mismatch', message)
  }
  if (db.prepare('SELECT 1 FROM sqlite_schema').get() !== undefined) {
    throw new UampError('conflict', `${path} belongs to another application: choose another data folder`)
  }
  admit(() => undefined)
  db.exec(`BEGIN; ${SCHEMA} COMMIT`)
}

/** A refused file is left unlocked: see `Connection.close`. */
function ask(db: Database.Database, admit: Admit): void {
  const value = db.prepare('SELECT value FROM records WHERE key = ?').raw()
  try {
    admit((key) => (value.get([key]) as [string] | undefined)?.[0])
  } catch (thrown) {
    db.exec(RELEASE)
    throw thrown
  }
}

/**
 * Adds what earlier formats did not have, and marks the file: older versions cannot read what this one writes, and then refuse to
 * open it. A process that dies on the way leaves a file with this mark; the next one goes on.
 */
function upgrade(db: Database.Database): void {
  const has = db.prepare(`SELECT 1 FROM pragma_table_info('streams') WHERE name = 'bytes'`).get() !== undefined
  const add = `ALTER TABLE streams ADD COLUMN bytes INTEGER; INSERT INTO marks SELECT 'weighed', coalesce(max(id), 0) FROM groups;`
  const entries = hasTable(db, 'entries') ? '' : ENTRIES
  db.exec(`BEGIN; ${has ? '' : add} ${entries} PRAGMA user_version = ${SCHEMA_VERSION}; COMMIT`)
  if (hasTable(db, 'record_index')) moveEntries(db)
}

/** Moves the entries of formats 1 and 2, which named records by key, in steps: one step would need much memory and a long log. */
function moveEntries(db: Database.Database): void {
  const last = db.prepare(`SELECT name, sort, key FROM record_index ORDER BY name, sort, key LIMIT 1 OFFSET ${MOVE_ENTRIES - 1}`).raw()
  const move = (until: string) => `
    INSERT OR IGNORE INTO entries SELECT i.name, i.sort, r.id FROM record_index i JOIN records r ON r.key = i.key ${until};
    DELETE FROM record_index AS i ${until};`
  const bound = db.prepare('SELECT quote(?), quote(?), quote(?)').raw()
  for (let end = last.get(); end !== undefined; end = last.get()) {
    const [name, sort, key] = bound.get(end as string[]) as string[]
    db.exec(`BEGIN; ${move(`WHERE (i.name, i.sort, i.key) <= (${name}, ${sort}, ${key})`)} COMMIT`)
  }
  db.exec(`BEGIN; ${move('')} DROP TABLE record_index; COMMIT`)
}

function hasTable(db: Database.Database, name: string): boolean {
  return db.prepare(`SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?`).get([name]) !== undefined
}

function pragma(db: Database.Database, name: string): number {
  return (db.prepare(`PRAGMA ${name}`).raw().get() as [number])[0]
}

export function explain(thrown: unknown, path: string): UampError {
  if (thrown instanceof UampError) return thrown
  const options = { cause: thrown }
  switch (errorCode(thrown)) {
    case 'SQLITE_BUSY':
      return new UampError('conflict', `${path} is in use by another server: stop that one, or choose another data folder`, options)
    case 'SQLITE_NOTADB':
    case 'SQLITE_CORRUPT':
      return new UampError(
        'internal',
        `${path} is damaged or not a database: move it away and put back a copy, or start with a new one`,
        options,
      )
    case 'SQLITE_FULL':
    case 'ENOSPC':
    case 'EDQUOT':
      return new UampError('overloaded', `There is no space left for ${path}: make room, or choose another data folder`, options)
    case 'SQLITE_READONLY':
    case 'EROFS':
    case 'EACCES':
    case 'EPERM':
      return new UampError('forbidden', `${path} cannot be written: check who owns its folder, or choose another data folder`, options)
    case 'ENOTDIR':
    case 'EEXIST':
      return new UampError('invalid_request', `${dirname(path)} is not a folder: choose another data folder`, options)
    case 'SQLITE_IOERR':
    case 'SQLITE_PROTOCOL':
    case 'SQLITE_NOLFS':
      return new UampError(
        'internal',
        `The file system of ${path} fails, or lacks locks, which SQLite needs: choose another data folder`,
        options,
      )
    default:
      return new UampError('internal', `${path} cannot be opened: check that the folder exists, is writable and has space left`, options)
  }
}

/** True if another process has the file open. */
export function isInUse(thrown: unknown): boolean {
  return thrown instanceof UampError && errorCode(thrown.cause) === 'SQLITE_BUSY'
}

/** The code of an error; SQLite's without the extension after the second underscore. */
export function errorCode(thrown: unknown): string | undefined {
  const code = thrown instanceof Error && 'code' in thrown ? thrown.code : undefined
  return typeof code === 'string' ? code.split('_', 2).join('_') : undefined
}
