import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { keysContract } from '../../test/contract/keys.ts'
import { checkKey } from '../core/durable/check-key.ts'
import { aesKeys, fileKeys, passingKeys } from './file-keys.ts'
import { memoryStore } from './memory.ts'

const KEY = Buffer.alloc(32, 7)

keysContract('AES', { open: () => aesKeys(KEY), other: () => passingKeys() })

/** A path for a key, deleted after the test. */
function place(): string {
  const folder = mkdtempSync(join(tmpdir(), 'uamp-keys-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  return join(folder, 'data', 'uamp.key')
}

test('makes a file that only its owner can read, once, and goes on with it', () => {
  const path = place()
  const { id } = fileKeys({ path })
  expect((statSync(path).mode & 0o777).toString(8)).toBe('600')
  expect((statSync(join(path, '..')).mode & 0o777).toString(8)).toBe('700')
  expect(fileKeys({ path }).id).toBe(id)
  expect(readdirSync(join(path, '..'))).toEqual(['uamp.key'])
  expect(fileKeys({ path: place() }).id).not.toBe(id)
})

test('takes a given key, in base64 and in hex, and then makes no file', () => {
  const path = place()
  const ids = ['base64', 'base64url', 'hex'].map((encoding) => fileKeys({ path, key: KEY.toString(encoding as 'hex') }).id)
  expect(new Set(ids)).toEqual(new Set([aesKeys(KEY).id]))
  expect(() => statSync(path)).toThrow('ENOENT')
})

test.each(['short', 'x'.repeat(43) + '!', KEY.toString('hex').slice(1), KEY.subarray(1).toString('base64'), ' '])(
  'refuses a given key that is none, and does not repeat it: %s',
  (key) => {
    let message = ''
    try {
      fileKeys({ path: place(), key })
    } catch (thrown) {
      message = (thrown as Error).message
    }
    expect(message).toMatch(/^UAMP_KEY must be 32 bytes/)
    if (key.length > 4) expect(message).not.toContain(key)
  },
)

test.each([0o640, 0o604, 0o660, 0o644])('refuses a file that others can read: mode %o', (mode) => {
  const path = place()
  fileKeys({ path })
  chmodSync(path, mode)
  expect(() => fileKeys({ path })).toThrow(/can be read by others \(mode 6\d\d\): chmod 600/)
})

test('refuses a file that is cut off anywhere, or holds something else', () => {
  const path = place()
  fileKeys({ path })
  const whole = readFileSync(path, 'utf8')
  for (let length = 0; length < whole.length - 1; length++) {
    writeFileSync(path, whole.slice(0, length))
    expect(() => fileKeys({ path })).toThrow(/does not hold a whole key/)
  }
  writeFileSync(path, `${whole}${whole}`)
  expect(() => fileKeys({ path })).toThrow(/does not hold a whole key/)
})

test('a store goes on with the key that it began with, and with no other', async () => {
  const store = memoryStore()
  await checkKey(store, aesKeys(KEY))
  await checkKey(store, aesKeys(KEY))
  await expect(checkKey(store, passingKeys())).rejects.toThrow(/were sealed with the key [0-9a-f]{16}, but this is [0-9a-f]{16}/)
})
