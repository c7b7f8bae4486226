// @ts-check
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { build, isStale, root } from './build.js'
import { installInterop } from './interop.js'
import { LEFT_OUT, longOnly } from './left-out.js'

/** @typedef {import('./tally-reporter.js').Tally} Tally */

/** Only what needs no install, no build and no patience. */
const fast = process.argv.includes('--fast')
const given = process.argv.slice(2).filter((argument) => argument !== '--fast')

/** @type {Tally} */
const FAILED = { passed: 0, failed: 1, skipped: [] }

/** @param {'fast' | 'rest'} [part] a part of the tests; all of them if it is left out. @returns {Promise<Tally>} */
async function runVitest(part) {
  const folder = mkdtempSync(join(tmpdir(), 'uamp-test-'))
  const file = join(folder, 'tally.json')
  const args = ['node_modules/vitest/vitest.mjs', 'run', '--reporter=default', '--reporter=./scripts/tally-reporter.js']
  const child = spawn(process.execPath, [...args, ...given], {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, UAMP_TALLY: file, ...(part && { UAMP_PART: part }) },
  })
  const [status] = await once(child, 'close')
  /** @type {Tally} */
  const tally = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : { passed: 0, failed: 0, skipped: [] }
  rmSync(folder, { recursive: true })
  return { ...tally, failed: tally.failed || (status === 0 ? 0 : 1) }
}

/** @returns {Promise<boolean>} whether there is all that the tests need; the one is built while the other is installed */
async function prepare() {
  const installing = installInterop()
  // `npm run check` looks at the types of everything.
  const built = !isStale() || (await build({ check: false }))
  return (await installing) && built
}

/** @returns {Promise<Tally>} */
async function testAll() {
  if (fast) return runVitest('fast')
  const preparing = prepare()
  if (given.length > 0) return (await preparing) ? runVitest() : FAILED
  // The tests that need neither the clients nor the build run while these are made.
  const first = await runVitest('fast')
  const second = (await preparing) ? await runVitest('rest') : FAILED
  return {
    passed: first.passed + second.passed,
    failed: first.failed + second.failed,
    skipped: [...first.skipped, ...second.skipped],
  }
}

const { passed, failed, skipped } = await testAll()
const strict = process.env['UAMP_NO_SKIPS'] === '1'
for (const { name, reason } of skipped) console.log(`skipped${strict ? ', which counts as a failure here' : ''}: ${name} (${reason})`)
const failures = failed + (strict ? skipped.length : 0)
const leftOut = fast ? LEFT_OUT : given.length > 0 ? {} : longOnly(process.env)
for (const [reason, files] of Object.entries(leftOut)) console.log(`left out: ${files.join(', ')} (${reason})`)
console.log(`tests: ${passed} passed, ${failures} failed, ${skipped.length} skipped`)
process.exitCode = failures === 0 ? 0 : 1
