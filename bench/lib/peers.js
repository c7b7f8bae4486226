// @ts-check
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** Peers are not ours to ship: they are installed when the bench first wants one. @param {string} name */
export function hasPeer(name) {
  const folder = fileURLToPath(new URL('../peers/', import.meta.url))
  if (existsSync(`${folder}node_modules/${name}`)) return true
  return spawnSync('npm', ['install', '--prefix', folder, '--no-audit', '--no-fund'], { cwd: folder, stdio: 'ignore' }).status === 0
}
