import { constants, existsSync } from 'node:fs'
import { access, statfs } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { shown } from '../../config/shown.ts'
import { assertKey, SEALED_WITH } from '../../core/durable/check-key.ts'
import { checkData } from '../../serve/data.ts'
import { findKeys } from '../../stores/file-keys.ts'
import { storeFormat } from '../../stores/sqlite-header.ts'
import { explain, isInUse } from '../../stores/sqlite-schema.ts'
import { sqliteStore } from '../../stores/sqlite.ts'
import { sizeText } from '../amounts.ts'
import { note, ok, wrong, wrongBy, type Check } from './check.ts'

/** Less free space than this is worth a note, or keeps a server from working. */
const LITTLE = 1024 ** 3
const TOO_LITTLE = 64 * 1024 ** 2
const OTHER = '--data or UAMP_DATA names another folder'

/** Checks a data folder, and leaves it as it is. */
export async function checkDataFolder(data: string): Promise<readonly Check[]> {
  if (data === 'memory') return [ok('data', 'sessions are kept in memory, until the server stops')]
  try {
    await checkData(data)
    const space = await checkSpace(data)
    return [await checkStore(data), space]
  } catch (thrown) {
    return [wrongBy('data', thrown, OTHER)]
  }
}

async function checkStore(data: string): Promise<Check> {
  const path = join(data, 'uamp.db')
  const name = shown(data)
  if (!existsSync(path)) return checkPlace(data)
  switch (storeFormat(path)) {
    case 'newer':
      return wrong('data', `${name} was written by a newer version of uamp`, `update uamp; ${OTHER}`)
    case 'foreign':
      return wrong('data', `${path} is damaged or not a database of uamp`, `put back a copy, or move it away; ${OTHER}`)
    case 'older':
      return note('data', `${name} has an older format`, 'the next start of the server updates it; copy the folder before')
    case 'empty':
    case 'current':
      return opened(data, name)
  }
}

/** Opening a file of the current format changes nothing in it. */
async function opened(data: string, name: string): Promise<Check> {
  const path = join(data, 'uamp.db')
  const losses: string[] = []
  try {
    const keys = findKeys({ path: join(data, 'uamp.key'), key: process.env['UAMP_KEY'] })
    const store = sqliteStore({
      path,
      onError: () => undefined,
      onLoss: (loss) => losses.push(loss),
      admit(record) {
        const sealed = record(SEALED_WITH)
        if (sealed !== undefined) assertKey(JSON.parse(sealed), keys)
      },
    })
    await store.close()
  } catch (thrown) {
    if (isInUse(thrown)) return ok('data', `${name} is in use by a server that runs`)
    return wrongBy('data', explain(thrown, path), OTHER)
  }
  if (losses.length > 0) return wrong('data', `data is missing in ${name} (${losses.join('; ')})`, 'put back a copy of the folder')
  return ok('data', `${name} opens, and can be written`)
}

/** A folder that the server would make. */
async function checkPlace(data: string): Promise<Check> {
  const parent = existing(data)
  try {
    await access(parent, constants.W_OK | constants.X_OK)
    return ok('data', existsSync(data) ? `${shown(data)} is empty, and can be written` : `${shown(data)} will be made`)
  } catch {
    return wrong('data', `this user may not write in ${parent}`, `\`chmod u+w ${parent}\` allows it; ${OTHER}`)
  }
}

async function checkSpace(data: string): Promise<Check> {
  const { bavail, bsize } = await statfs(existing(data))
  const free = bavail * bsize
  const found = `${sizeText(free)} free`
  if (free < TOO_LITTLE) return wrong('space', found, `make room, or remove old sessions with \`npx uamp store prune\`; ${OTHER}`)
  return free < LITTLE ? note('space', found, '`npx uamp store prune --older-than 30d` removes old sessions') : ok('space', found)
}

function existing(folder: string): string {
  const path = resolve(folder)
  return existsSync(path) || dirname(path) === path ? path : existing(dirname(path))
}
