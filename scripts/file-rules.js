// @ts-check
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { filesBelow, root } from './build.js'

const MAX_LINES = 400
const SOURCE = /^(src|scripts|create-uamp|bench|examples|test|console)\/.*\.([jt]sx?|mjs)$/
/** Folders of one machine, and registries that only one network has. */
const PRIVATE = /(?<![\w.-])\/(home|root|Users|work)\/[\w.-]+|"resolved": "(?=http)(?!https:\/\/registry\.npmjs\.org\/)/

/** @returns {string[]} what git has or would add */
function projectFiles() {
  const { stdout } = spawnSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], { cwd: root, encoding: 'utf8' })
  return stdout.split('\0').filter((name) => name !== '' && existsSync(join(root, name)))
}

/** @returns {string[]} */
export function longFiles() {
  return projectFiles()
    .filter((name) => SOURCE.test(name))
    .map((name) => ({ name, lines: readFileSync(join(root, name), 'utf8').split('\n').length - 1 }))
    .filter(({ lines }) => lines > MAX_LINES)
    .map(({ name, lines }) => `${name}: ${lines} lines; ${MAX_LINES} are allowed`)
}

/** @returns {string[]} */
export function machinePaths() {
  return projectFiles().flatMap((name) =>
    readFileSync(join(root, name), 'utf8')
      .split('\n')
      .flatMap((line, index) => (PRIVATE.test(line) ? [`${name}:${index + 1}: ${line.trim().slice(0, 120)}`] : [])),
  )
}

/** @returns {number} bytes of the packages that a user of ours installs */
export function productionBytes() {
  const { stdout } = spawnSync('npm', ['ls', '--omit=dev', '--all', '--parseable'], {
    cwd: root,
    encoding: 'utf8',
    shell: process.platform === 'win32',
  })
  const packages = stdout.split('\n').filter((path) => path.includes('node_modules'))
  // Nested packages lie inside others; a file counts once.
  const files = new Set(packages.flatMap((path) => (existsSync(path) ? filesBelow(path) : [])))
  return [...files].reduce((sum, file) => sum + statSync(file).size, 0)
}
