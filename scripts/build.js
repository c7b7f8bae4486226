// @ts-check
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { bundle } from './bundle.js'

export const root = fileURLToPath(new URL('..', import.meta.url))
const dist = join(root, 'dist')
/** Written last, so that a build that was broken off counts as none. */
const stamp = join(dist, '.built')
const INPUTS = ['src', 'package.json', 'tsconfig.json', 'tsconfig.build.json', 'scripts/write-schemas.js', 'scripts/bundle.js']
/** @param {string} folder @returns {string[]} every file below it */
export function filesBelow(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name)
    return entry.isDirectory() ? filesBelow(path) : [path]
  })
}

/** @param {string} path @returns {number} when it or anything below it last changed; a folder changes when a file in it is removed */
function newest(path) {
  const stats = statSync(path)
  return stats.isDirectory() ? Math.max(stats.mtimeMs, ...readdirSync(path).map((name) => newest(join(path, name)))) : stats.mtimeMs
}

/** Whether `dist` is missing or older than what it is made from. */
export function isStale() {
  return !existsSync(stamp) || INPUTS.some((name) => newest(join(root, name)) > statSync(stamp).mtimeMs)
}

/**
 * An incremental compiler leaves the types of deleted sources behind, and the wildcards of `exports` would still publish them. Code has
 * another name after each change.
 *
 * @param {ReadonlySet<string>} written
 */
function prune(written) {
  for (const file of filesBelow(dist)) {
    const name = relative(dist, file)
    if (name.endsWith('.d.ts') && !existsSync(join(root, 'src', name.replace(/\.d\.ts$/, '.ts')))) rmSync(file)
    if (name.endsWith('.js') && !written.has(file)) rmSync(file)
  }
}

/** @param {string[]} args of node */
async function node(args) {
  const [code] = await once(spawn(process.execPath, args, { cwd: root, stdio: 'inherit' }), 'exit')
  return code === 0
}

/**
 * @param {{ check?: boolean }} [options] false: write types without a check of the code, which is most of the compiler's work
 * @returns {Promise<boolean>} whether it worked; the reasons are on the terminal
 */
export async function build({ check = true } = {}) {
  const started = new Date()
  rmSync(stamp, { force: true })
  const sources = filesBelow(join(root, 'src')).filter((file) => /(?<!\.test)\.ts$/.test(file))
  const [typed, written] = await Promise.all([
    node(['node_modules/typescript/bin/tsc', '-p', 'tsconfig.build.json', ...(check ? [] : ['--noCheck'])]),
    bundle({ root, dist, sources }),
  ])
  if (!typed) return false
  prune(written)
  if (!(await node(['scripts/write-schemas.js']))) return false
  writeFileSync(stamp, '')
  // A source that was saved while we were building makes this build stale.
  utimesSync(stamp, started, started)
  return true
}

if (process.argv[1] === fileURLToPath(import.meta.url)) process.exitCode = (await build()) ? 0 : 1
