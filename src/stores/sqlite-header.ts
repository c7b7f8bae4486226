import { closeSync, openSync, readSync } from 'node:fs'
import { APPLICATION_ID, SCHEMA_VERSION } from './sqlite-schema.ts'

/** SQLite's file format §1.3: the first 100 bytes. */
const HEADER_BYTES = 100
const MAGIC = 'SQLite format 3\0'
const USER_VERSION_AT = 60
const APPLICATION_ID_AT = 68

export type StoreFormat = 'current' | 'older' | 'newer' | 'empty' | 'foreign'

/** The format of a database file, by its first bytes. SQLite itself would lock the file, and write beside it. */
export function storeFormat(path: string): StoreFormat {
  const header = Buffer.alloc(HEADER_BYTES)
  const file = openSync(path, 'r')
  try {
    const bytes = readSync(file, header, 0, HEADER_BYTES, 0)
    if (bytes === 0) return 'empty'
    if (bytes < HEADER_BYTES || header.toString('latin1', 0, MAGIC.length) !== MAGIC) return 'foreign'
  } finally {
    closeSync(file)
  }
  const version = header.readUInt32BE(USER_VERSION_AT)
  // A new database is in its log at first, and the file says nothing.
  if (header.readUInt32BE(APPLICATION_ID_AT) === 0 && version === 0) return 'empty'
  if (header.readUInt32BE(APPLICATION_ID_AT) !== APPLICATION_ID) return 'foreign'
  return version === SCHEMA_VERSION ? 'current' : version < SCHEMA_VERSION ? 'older' : 'newer'
}
