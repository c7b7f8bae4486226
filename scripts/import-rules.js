// @ts-check
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { filesBelow, root } from './build.js'

/** @typedef {{ rule: { name: string }, from: string, to: string }} Violation */

/**
 * Reads `src` of a folder with the project's rules. It refuses a run that saw fewer modules than there are files:
 * with a TypeScript it cannot use, dependency-cruiser reads none and calls that a success.
 *
 * @param {string} folder
 * @returns {{ modules: number, violations: Violation[] }}
 */
export function cruise(folder) {
  const args = ['--config', join(root, '.dependency-cruiser.mjs'), '--output-type', 'json', 'src']
  const { stdout, stderr } = spawnSync(
    process.execPath,
    [join(root, 'node_modules/dependency-cruiser/bin/dependency-cruise.mjs'), ...args],
    {
      cwd: folder,
      encoding: 'utf8',
      maxBuffer: 1 << 28,
    },
  )
  if (!stdout.startsWith('{')) throw new Error(`dependency-cruiser gave no report: ${stderr || stdout}`)
  const { modules, summary } = JSON.parse(stdout)
  const seen = modules.filter((/** @type {{ source: string }} */ { source }) => source.startsWith('src/')).length
  const there = filesBelow(join(folder, 'src')).filter((file) => file.endsWith('.ts')).length
  if (seen < there) throw new Error(`dependency-cruiser saw ${seen} of ${there} modules`)
  return { modules: seen, violations: summary.violations }
}
