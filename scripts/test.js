// @ts-check
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { build, isStale, root } from './build.js'
import { installInterop } from './interop.js'
import { LEFT_OUT } from './left-out.js'

/** @typedef {import('./tally-reporter.js').Tally} Tally */

/** Only what needs no install, no build and no patience. */
const fast = process.argv.includes('--fast')
const given = process.argv.slice(2).filter((argument) => argument !== '--fast')

/** @returns {Tally} */
function runVitest() {
  const folder = mkdtempSync(join(tmpdir(), 'uamp-test-'))
  const file = join(folder, 'tally.json')
  const args = ['node_modules/vitest/vitest.mjs', 'run', '--reporter=default', '--reporter=./scripts/tally-reporter.js']
  const { status } = spawnSync(process.execPath, [...args, ...given], {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, UAMP_TALLY: file, ...(fast && { UAMP_FAST: '1' }) },
  })
  /** @type {Tally} */
  const tally = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : { passed: 0, failed: 0, skipped: [] }
  rmSync(folder, { recursive: true })
  return { ...tally, failed: tally.failed || (status === 0 ? 0 : 1) }
}

/** @returns {Promise<boolean>} whether there is all that the tests need; the one is built while the other is installed */
async function prepare() {
  const installing = installInterop()
  const built = !isStale() || (await build())
  return (await installing) && built
}

/** @returns {Promise<Tally>} */
async function testAll() {
  if (!fast && !(await prepare())) return { passed: 0, failed: 1, skipped: [] }
  return runVitest()
}

const { passed, failed, skipped } = await testAll()
const strict = process.env['UAMP_NO_SKIPS'] === '1'
for (const { name, reason } of skipped) console.log(`skipped${strict ? ', which counts as a failure here' : ''}: ${name} (${reason})`)
const failures = failed + (strict ? skipped.length : 0)
if (fast) for (const [reason, files] of Object.entries(LEFT_OUT)) console.log(`left out: ${files.join(', ')} (${reason})`)
console.log(`tests: ${passed} passed, ${failures} failed, ${skipped.length} skipped`)
process.exitCode = failures === 0 ? 0 : 1
