import { Buffer } from 'node:buffer'
import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from 'node:crypto'
import { closeSync, fstatSync, fsyncSync, mkdirSync, openSync, readFileSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import process from 'node:process'
import type { Keys } from '../core/ports/keys.ts'
import { UampError } from '../protocol/errors.ts'

const BYTES = 32
const IV_BYTES = 12
const TAG_BYTES = 16
/** The content of the file. Its form keeps a key of another kind, or half a key, from being used. */
const FILE = /^uamp-key-1:([A-Za-z0-9_-]{43})\n?$/
/** A sealed text begins with its format and the id of its key. */
const SEALED = 'uamp-sealed-1'

/** AES-256-GCM. Separate keys for encryption and for digests are derived from the given key. */
export function aesKeys(key: Uint8Array): Keys {
  if (key.length !== BYTES) throw new UampError('invalid_request', `A key has ${BYTES} bytes, but this one has ${key.length}`)
  const derived = (purpose: string): Buffer => Buffer.from(hkdfSync('sha256', key, '', `uamp ${purpose} 1`, BYTES))
  const sealing = derived('seal')
  const digesting = derived('digest')
  const id = derived('id').toString('hex').slice(0, 16)
  const bound = (about: string): Buffer => Buffer.from(`${SEALED}:${id}:${about}`)

  return {
    id,
    seal(text, about) {
      const iv = randomBytes(IV_BYTES)
      const cipher = createCipheriv('aes-256-gcm', sealing, iv).setAAD(bound(about))
      const body = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
      return `${SEALED}:${id}:${Buffer.concat([iv, cipher.getAuthTag(), body]).toString('base64url')}`
    },
    open(sealed, about) {
      const [format, by, data = ''] = sealed.split(':')
      if (format !== SEALED) throw unopened('is in a format that is not known here')
      if (by !== id) throw unopened(`was sealed with the key ${by}, but this is ${id}`)
      const bytes = Buffer.from(data, 'base64url')
      if (bytes.length < IV_BYTES + TAG_BYTES) throw unopened('is cut off')
      const cipher = createDecipheriv('aes-256-gcm', sealing, bytes.subarray(0, IV_BYTES), { authTagLength: TAG_BYTES })
      cipher.setAAD(bound(about)).setAuthTag(bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES))
      try {
        return Buffer.concat([cipher.update(bytes.subarray(IV_BYTES + TAG_BYTES)), cipher.final()]).toString('utf8')
      } catch (cause) {
        throw unopened('is damaged, or belongs to another record', cause)
      }
    },
    digest: (text) => createHmac('sha256', digesting).update(text).digest('hex'),
  }
}

/** Keys for this process only: nothing that they seal can be opened after it ends. */
export function passingKeys(): Keys {
  return aesKeys(randomBytes(BYTES))
}

export interface FileKeysOptions {
  /** The key's file. If it does not exist, it is created with a new key. */
  readonly path: string
  /** The key itself, instead of a file: 32 bytes in base64 or hex. */
  readonly key?: string | undefined
}

/** Keys that outlive the process. Throws if other users can read the file, or if it does not hold a whole key. */
export function fileKeys(options: FileKeysOptions): Keys {
  return findKeys(options) ?? aesKeys(makeKey(options.path))
}

/** As `fileKeys`, but makes no file. */
export function findKeys({ path, key }: FileKeysOptions): Keys | undefined {
  const found = key === undefined || key === '' ? readKey(path) : parsed(key)
  return found && aesKeys(found)
}

function parsed(text: string): Uint8Array {
  const hex = /^[0-9a-f]{64}$/i.test(text)
  const bytes = Buffer.from(text, hex ? 'hex' : 'base64')
  if (hex || (bytes.length === BYTES && /^[A-Za-z0-9+/_-]{43}=?$/.test(text))) return bytes
  throw new UampError(
    'invalid_request',
    `UAMP_KEY must be ${BYTES} bytes in base64 or hex, as \`openssl rand -base64 ${BYTES}\` writes them`,
  )
}

function readKey(path: string): Uint8Array | undefined {
  let file: number
  try {
    file = openSync(path, 'r')
  } catch (thrown) {
    if (codeOf(thrown) === 'ENOENT') return undefined
    throw unreadable(path, `cannot be read (${codeOf(thrown)})`, thrown)
  }
  try {
    const { mode } = fstatSync(file)
    if (process.platform !== 'win32' && (mode & 0o077) !== 0) {
      throw unreadable(path, `can be read by others (mode ${(mode & 0o777).toString(8)}): chmod 600 it, and think about who has read it`)
    }
    const found = FILE.exec(readFileSync(file, 'utf8'))?.[1]
    if (found === undefined) throw unreadable(path, 'does not hold a whole key: put it back from a copy')
    return Buffer.from(found, 'base64url')
  } finally {
    closeSync(file)
  }
}

/** `wx`: if two processes start at once, one creates the key, and the other fails instead of using a second key. */
function makeKey(path: string): Uint8Array {
  const key = randomBytes(BYTES)
  let file: number
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    file = openSync(path, 'wx', 0o600)
  } catch (thrown) {
    throw unreadable(path, `cannot be made (${codeOf(thrown)}): check that the folder can be written to`, thrown)
  }
  try {
    writeSync(file, `uamp-key-1:${key.toString('base64url')}\n`)
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
  return key
}

function unreadable(path: string, why: string, cause?: unknown): UampError {
  return new UampError('invalid_request', `The key file ${path} ${why}`, { cause })
}

function unopened(why: string, cause?: unknown): UampError {
  return new UampError('internal', 'Internal error', { cause: new Error(`A sealed secret ${why}`, { cause }) })
}

function codeOf(thrown: unknown): string {
  return String((thrown as { code?: unknown }).code)
}
