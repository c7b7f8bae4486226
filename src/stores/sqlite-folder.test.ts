import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { checkFolder } from './sqlite-folder.ts'

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'uamp-folder-'))
  onTestFinished(() => rmSync(path, { recursive: true }))
  return path
}

test('a folder that is not there, an empty one and one in use are fine, and nothing is made', async () => {
  const path = folder()
  await checkFolder(join(path, 'new', 'deep', 'a.db'))
  await checkFolder(join(path, 'a.db'))
  for (const end of ['', '-wal', '-mark']) writeFileSync(join(path, `a.db${end}`), '')
  await checkFolder(join(path, 'a.db'))
  expect(readdirSync(path)).toEqual(['a.db', 'a.db-mark', 'a.db-wal'])
})

test('a file in place of a folder, and a folder in place of a file', async () => {
  const path = folder()
  writeFileSync(join(path, 'file'), '')
  const expected = { code: 'invalid_request', message: expect.stringContaining(`${join(path, 'file')} is not a folder`) as string }
  await expect(checkFolder(join(path, 'file', 'a.db'))).rejects.toMatchObject(expected)
  await expect(checkFolder(join(path, 'file', 'deep', 'a.db'))).rejects.toMatchObject({ code: 'invalid_request' })
  mkdirSync(join(path, 'a.db-wal'))
  await expect(checkFolder(join(path, 'a.db'))).rejects.toThrow('a.db-wal is not a file: move it away')
})

test.skipIf(process.platform === 'win32')('a pipe, in which SQLite would wait for ever', async () => {
  const path = folder()
  for (const name of ['pipe', 'a.db-journal']) spawnSync('mkfifo', [join(path, name)])
  await expect(checkFolder(join(path, 'pipe', 'a.db'))).rejects.toThrow('pipe is not a folder')
  await expect(checkFolder(join(path, 'a.db'))).rejects.toThrow('a.db-journal is not a file')
})

test('a folder that may not be written', async () => {
  // Root may write anywhere, so the test itself makes the error of the system.
  const look = async () => {
    throw Object.assign(new Error('EACCES: permission denied'), { code: 'EACCES' })
  }
  const expected = { code: 'forbidden', message: expect.stringContaining('cannot be written: check who owns its folder') as string }
  await expect(checkFolder(join(folder(), 'a.db'), { look })).rejects.toMatchObject(expected)
})

test('a file system that does not answer', async () => {
  const dead = checkFolder(join(folder(), 'a.db'), { deadlineMs: 20, look: () => new Promise(() => {}) })
  await expect(dead).rejects.toMatchObject({ code: 'timeout', message: expect.stringContaining('does not answer') as string })
})
