import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { Workspace } from '../docs/workspace.ts'
import { freshPlace, packagesAbove } from '../support/fresh-place.ts'

function temporary(): string {
  const folder = mkdtempSync(join(tmpdir(), 'uamp-place-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  return folder
}

test('tests have no packages above their folders, in their home or in NODE_PATH', () => {
  expect([...packagesAbove(tmpdir()), ...packagesAbove(homedir())]).toEqual([])
  expect(process.env['NODE_PATH']).toBeUndefined()
})

test('a place with packages above it is passed over, and without another one nothing is tested', () => {
  const [stray, clean] = [temporary(), temporary()]
  mkdirSync(join(stray, 'node_modules'))
  const below = join(stray, 'a/b')
  mkdirSync(below, { recursive: true })
  expect(freshPlace([below, clean]).startsWith(clean)).toBe(true)
  expect(() => freshPlace([below])).toThrow(`remove ${join(stray, 'node_modules')}`)
})

test('what a guide does not tell its reader to install is not found', async () => {
  const workspace = new Workspace()
  onTestFinished(() => workspace.close())
  const resolved = (name: string): string => {
    writeFileSync(join(workspace.folder, 'resolve.mjs'), `console.log(import.meta.resolve('${name}'))`)
    return execFileSync(process.execPath, ['resolve.mjs'], { cwd: workspace.folder, encoding: 'utf8', stdio: 'pipe' })
  }
  expect(resolved('ws')).toContain('ws')
  // The clone has it.
  expect(() => resolved('pino')).toThrow('Cannot find package')
})
