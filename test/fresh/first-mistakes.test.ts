import { spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { nodeMistake } from '../../create-uamp/node-version.js'
import { nodeMistake as ofTheCli } from '../../src/cli/node-version.ts'
import { ROOT } from './project.ts'

/** A copy of what a clone has before `npm install`, for a Node that this is not. */
function copied(engine?: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'uamp-first-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  for (const name of ['create-uamp', 'scripts', 'package.json']) cpSync(join(ROOT, name), join(folder, name), { recursive: true })
  if (engine === undefined) return folder
  for (const name of ['package.json', 'create-uamp/package.json']) {
    const file = join(folder, name)
    writeFileSync(file, readFileSync(file, 'utf8').replace(/"node": ">=[\d.]+"/, `"node": "${engine}"`))
  }
  return folder
}

const run = (cwd: string, script: string) => spawnSync(process.execPath, [script], { cwd, encoding: 'utf8', timeout: 20_000 })

test('npm start before npm install, or with an old Node, says what to do', () => {
  expect(run(copied(), 'scripts/start.js')).toMatchObject({
    status: 1,
    stdout: '',
    stderr: 'There is nothing to start yet: run `npm install` first.\n',
  })
  expect(run(copied('>=99.1'), 'scripts/start.js')).toMatchObject({
    status: 1,
    stderr: expect.stringMatching(/^uamp needs Node 99\.1 or later, and this is v.*`nvm install 99`\n$/),
  })
})

test('npm create uamp makes nothing with an old Node', () => {
  const cwd = copied('>=99.1')
  const before = readdirSync(cwd)
  expect(run(cwd, 'create-uamp/index.js')).toMatchObject({ status: 1, stdout: '', stderr: expect.stringMatching(/^uamp needs Node 99\.1/) })
  expect(readdirSync(cwd)).toEqual(before)
})

test('everybody wants the same Node', () => {
  const { engines } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { engines: { node: string } }
  for (const version of ['v18.20.8', 'v20.18.9', 'v20.19.0', 'v22.0.0']) {
    expect(nodeMistake(version, engines.node)).toBe(ofTheCli(version))
  }
})
