// @ts-check
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './build.js'
import { longFiles, machinePaths, productionBytes } from './file-rules.js'
import { cruise } from './import-rules.js'
import { installInterop } from './interop.js'
import { bundleClient } from './neutral-bundle.js'

const MAX_DEPENDENCIES_MB = 60

/** @typedef {{ problems: readonly string[], note?: string }} Outcome */

/** @param {string} script below node_modules @param {string[]} args @returns {() => Outcome} */
const tool = (script, ...args) => run(process.execPath, [join('node_modules', script), ...args])

/** @param {string} command @param {string[]} args @returns {() => Outcome} */
function run(command, args) {
  return () => {
    const { status, stdout, stderr } = spawnSync(command, args, { cwd: root, encoding: 'utf8', maxBuffer: 1 << 28 })
    return { problems: status === 0 ? [] : [`${stdout}${stderr}`.trim() || `${args.join(' ')} ended with ${status}`] }
  }
}

/** @returns {Outcome} */
function imports() {
  const { modules, violations } = cruise(root)
  return { note: `${modules} modules`, problems: violations.map(({ rule, from, to }) => `${rule.name}: ${from} → ${to}`) }
}

/** @returns {Promise<Outcome>} */
async function bundle() {
  const { bytes, problem } = await bundleClient()
  return { note: `${(bytes / 1000).toFixed(1)} kB gzipped`, problems: problem ? [problem] : [] }
}

/** @returns {Outcome} */
function dependencies() {
  const megabytes = productionBytes() / 1e6
  const note = `${megabytes.toFixed(1)} MB for production`
  return { note, problems: megabytes > MAX_DEPENDENCIES_MB ? [`${note}; the limit is ${MAX_DEPENDENCIES_MB}`] : [] }
}

/** A rehearsal of `npm publish`, with a registry that nobody reaches. npm says there what it would have to correct. @returns {Outcome} */
function publishing() {
  const args = ['publish', '--dry-run', '--ignore-scripts', '--registry', 'http://127.0.0.1:9', '--fetch-retries', '0']
  const { status, stderr } = spawnSync('npm', args, { cwd: root, encoding: 'utf8', shell: process.platform === 'win32' })
  const warnings = stderr.split('\n').filter((line) => /^npm (warn publish|error)/.test(line) && !line.includes('to be logged in'))
  return { note: /package size: *(.*)/.exec(stderr)?.[1] ?? '', problems: status === 0 ? warnings : [stderr] }
}

/** What a newcomer is told to type is what CI runs. @returns {Outcome} */
function readme() {
  const missing = ['npm install && npm start', 'npm install && npm test'].filter(
    (command) => !readFileSync(join(root, 'README.md'), 'utf8').includes(command),
  )
  return { problems: missing.map((command) => `README.md does not say: ${command}`) }
}

/** @returns {Outcome} with the tests' own output on the terminal */
function tests() {
  const { status } = spawnSync(process.execPath, ['scripts/test.js'], { cwd: root, stdio: 'inherit' })
  return { problems: status === 0 ? [] : ['see above'] }
}

/** @type {Record<string, () => Outcome | Promise<Outcome>>} */
const checks = {
  // First: lint and types look at what the clients export.
  'interop clients': async () => ({ problems: (await installInterop()) ? [] : ['test/interop could not be installed'] }),
  format: tool('prettier/bin/prettier.cjs', '--check', '--log-level', 'warn', '.'),
  lint: tool('oxlint/bin/oxlint', '--type-aware', '--deny-warnings', '--format=unix'),
  // Before the types: the examples take theirs from what is built.
  build: run(process.execPath, ['scripts/build.js']),
  types: tool('typescript/bin/tsc', '-p', 'tsconfig.json'),
  'types, neutral': tool('typescript/bin/tsc', '-p', 'tsconfig.neutral.json'),
  imports,
  unused: tool('knip/bin/knip.js'),
  package: tool('publint/src/cli.js', '--strict'),
  publish: publishing,
  'client bundle': bundle,
  dependencies,
  'file length': () => ({ problems: longFiles() }),
  'machine paths': () => ({ problems: machinePaths() }),
  readme,
  ...(process.argv.includes('--no-tests') ? {} : { tests }),
}

/** @type {string[]} */
const failed = []
for (const [name, check] of Object.entries(checks)) {
  const started = performance.now()
  /** @type {Outcome} */
  const { problems, note = '' } = await Promise.resolve()
    .then(check)
    .catch((thrown) => ({ problems: [String(thrown)] }))
  if (problems.length > 0) failed.push(name)
  const seconds = ((performance.now() - started) / 1000).toFixed(1)
  console.log(`${problems.length > 0 ? 'FAIL' : 'ok  '} ${name.padEnd(16)} ${seconds.padStart(5)} s  ${note}`.trimEnd())
  for (const problem of problems) console.log(problem.replaceAll(/^/gm, '       '))
}

if (failed.length > 0) console.log(`failed: ${failed.join(', ')}`)
console.log(`checks: ${Object.keys(checks).length - failed.length} passed, ${failed.length} failed`)
process.exitCode = failed.length > 0 ? 1 : 0
