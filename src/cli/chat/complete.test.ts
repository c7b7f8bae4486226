import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { complete } from './complete.ts'

test('Tab completes commands, and paths after @ and after commands that take one', () => {
  const folder = mkdtempSync(join(tmpdir(), 'uamp-complete-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  mkdirSync(join(folder, 'notes'))
  for (const name of ['note.txt', 'other.txt', 'two words.txt', '.hidden']) writeFileSync(join(folder, name), '')
  const within = (names: readonly string[]): readonly string[] => names.map((name) => `${folder}/${name}`)
  expect(complete('/sa', '')).toEqual(['/save '])
  expect(complete(`@${folder}/no`, 'see ').toSorted()).toEqual(within(['note.txt', 'notes/']).map((path) => `@${path}`))
  for (const command of ['/file ', '/image  ', '/save ']) {
    expect(complete(`${folder}/no`, command).toSorted()).toEqual(within(['note.txt', 'notes/']))
    expect(complete(`${folder}/`, command).toSorted()).toEqual(within(['note.txt', 'notes/', 'other.txt']))
  }
  expect(complete(`${folder}/no`, 'see ')).toEqual([])
  expect(complete(`${folder}/no`, '/model ')).toEqual([])
  expect(complete(`${folder}/none/x`, '/file ')).toEqual([])
})
