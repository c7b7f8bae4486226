import { existsSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { shown } from '../../config/shown.ts'
import { remoteStorage } from '../../serve/storage/control.ts'
import { storageOf, type Pruned, type Storage, type StorageReport } from '../../serve/storage/index.ts'
import { windowsOf } from '../../serve/windows.ts'
import { UampError } from '../../protocol/errors.ts'
import { present } from '../../wire/fields.ts'
import { fileBlobs } from '../../stores/file-blobs.ts'
import { checkFolder } from '../../stores/sqlite-folder.ts'
import { isInUse } from '../../stores/sqlite-schema.ts'
import { sqliteStore } from '../../stores/sqlite.ts'
import { sizeText } from '../amounts.ts'
import { harmless, painter, report } from '../print.ts'

export interface ShowFlags {
  readonly data?: string
  readonly json?: true
}

export interface PruneFlags {
  readonly data?: string
  readonly olderThan?: number
  readonly toBytes?: number
  readonly principal?: string
  readonly yes?: true
}

/** How many principals are shown, those with the most bytes first. */
const SHOWN = 20

export async function show({ data, json }: ShowFlags): Promise<number> {
  const { done, failed } = await inEach(data, async (folder) => {
    const found = await using(folder, (storage) => storage.show())
    const files = { database: sizeOf(join(folder, 'uamp.db')) + sizeOf(join(folder, 'uamp.db-wal')), uploads: uploadsIn(folder) }
    return { folder, ...found, files }
  })
  const [first, ...windows] = done
  if (first) process.stdout.write(json ? `${JSON.stringify({ ...first, windows })}\n` : done.map(page).join('\n'))
  return failed ? 1 : 0
}

export async function prune({ data, olderThan, toBytes, principal, yes }: PruneFlags): Promise<number> {
  if (olderThan === undefined && toBytes === undefined && principal === undefined) {
    throw new UampError('invalid_request', 'Choose what to remove: --older-than 30d, --to-bytes 1GB or --principal alice')
  }
  const request = {
    ...present({ principal, before: olderThan === undefined ? undefined : Date.now() - olderThan, bytes: toBytes }),
    dryRun: !yes,
  }
  const { done, failed } = await inEach(data, (folder) => using(folder, (storage) => storage.prune(request), { rewrite: yes === true }))
  const sum = (name: keyof Pruned): number => done.reduce((total, each) => total + each[name], 0)
  const what = `${count(sum('sessions'), 'session')} and ${count(sum('records'), 'other record')} with ${sizeText(sum('bytes'))}`
  if (done.length > 0) process.stdout.write(yes ? `Removed ${what}.\n` : `This would remove ${what}. Add --yes to remove them for good.\n`)
  if (sum('inUse') > 0) process.stdout.write(`${count(sum('inUse'), 'session')} stayed, because somebody uses them now.\n`)
  return failed ? 1 : 0
}

/** Runs in the data folder and in those of further windows of an IDE. One that cannot be used is reported, and keeps none from the rest. */
async function inEach<T>(given: string | undefined, run: (folder: string) => Promise<T>) {
  const data = given || process.env['UAMP_DATA'] || '.uamp'
  const done: T[] = []
  let [found, failed] = [false, false]
  for (const folder of windowsOf(data)) {
    try {
      await checkFolder(join(folder, 'uamp.db'))
      if (!existsSync(join(folder, 'uamp.db'))) continue
      found = true
      done.push(await run(folder))
    } catch (thrown) {
      found = failed = true
      report(thrown)
    }
  }
  if (!found) throw new UampError('not_found', `There is no data in ${data}: name the folder of the server with --data`)
  return { done, failed }
}

/** Uses the folder itself, or asks the server that has it open. */
async function using<T>(folder: string, run: (storage: Storage) => Promise<T>, { rewrite = false } = {}): Promise<T> {
  const path = join(folder, 'uamp.db')
  const opened = open(path)
  if (!opened) return asked(folder, run)
  try {
    const blobs = fileBlobs({ path: join(folder, 'blobs') })
    return await run(storageOf({ store: opened, blobs }))
  } finally {
    await opened.close()
    // Large files of version 0.1 can shrink now that they hold less, and no server waits.
    if (rewrite) await sqliteStore({ path, onError: report, rewriteBytes: Infinity }).close()
  }
}

function open(path: string) {
  try {
    // Losses are reported only to the first process that opens the folder, which is this one.
    return sqliteStore({ path, onError: report, onLoss: (loss) => report(`Data is missing: ${loss}`) })
  } catch (thrown) {
    if (isInUse(thrown)) return undefined
    throw thrown
  }
}

async function asked<T>(folder: string, run: (storage: Storage) => Promise<T>): Promise<T> {
  try {
    return await run(remoteStorage(folder))
  } catch (thrown) {
    if (thrown instanceof UampError) throw thrown
    throw new UampError('conflict', `${folder} is in use by a server that does not answer: stop it first`, { cause: thrown })
  }
}

interface Files {
  readonly database: number
  readonly uploads: { readonly count: number; readonly bytes: number }
}

interface Shown extends StorageReport {
  readonly folder: string
  readonly files: Files
}

function page({ folder, bytes, kinds, principals, files: { database, uploads } }: Shown): string {
  const paint = painter(process.stdout)
  const kindRows = Object.entries(kinds).map(([kind, { count: many, bytes: size, oldest, newest }]) => [
    kind,
    String(many),
    sizeText(size),
    ...times(oldest, newest),
  ])
  const principalRows = principals
    .slice(0, SHOWN)
    .map(({ tenant, principal, sessions, bytes: size, oldest, newest }) => [
      harmless(tenant === 'default' ? principal : `${tenant} ${principal}`),
      String(sessions),
      sizeText(size),
      ...times(oldest, newest),
    ])
  const more = principals.length > SHOWN ? [`and ${principals.length - SHOWN} more`] : []
  return [
    `${paint('bold', shown(folder))}: ${sizeText(database)} on disk, ${sizeText(bytes)} in use; ${count(uploads.count, 'upload')} with ${sizeText(uploads.bytes)}`,
    '',
    ...table([['kind', 'count', 'size', 'oldest', 'newest'], ...kindRows]),
    '',
    ...table([['principal', 'sessions', 'size', 'oldest', 'newest'], ...principalRows]),
    ...more,
    '',
  ].join('\n')
}

function times(oldest: number | null | undefined, newest: number | null | undefined): string[] {
  return [oldest, newest].map((time) =>
    time === undefined || time === null ? '' : new Date(time).toISOString().slice(0, 16).replace('T', ' '),
  )
}

/** Aligns names to the left and numbers to the right. */
function table(rows: readonly (readonly string[])[]): string[] {
  const widths = rows[0]?.map((_, at) => Math.max(...rows.map((row) => row[at]?.length ?? 0))) ?? []
  return rows.map((row) =>
    row
      .map((cell, at) => (at === 0 ? cell.padEnd(widths[at] ?? 0) : cell.padStart(widths[at] ?? 0)))
      .join('  ')
      .trimEnd(),
  )
}

function count(number: number, what: string): string {
  return `${number.toLocaleString('en-US')} ${what}${number === 1 ? '' : 's'}`
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0
}

function uploadsIn(folder: string): Files['uploads'] {
  const path = join(folder, 'blobs')
  const sizes = existsSync(path) ? readdirSync(path).map((name) => sizeOf(join(path, name))) : []
  return { count: sizes.length, bytes: sizes.reduce((sum, size) => sum + size, 0) }
}
