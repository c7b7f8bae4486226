import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

/**
 * Gives the whole test run a home and a temporary folder of its own. Node, npm and TypeScript look for packages in every folder
 * above the importing file and in the home, so a package that somebody once installed there would hide that ours lacks it.
 */
export function setup(): () => void {
  const place = freshPlace([tmpdir(), '/var/tmp', '/dev/shm', homedir()])
  const [home, temporary] = [join(place, 'home'), join(place, 'tmp')]
  mkdirSync(home)
  mkdirSync(temporary)
  // The registry's address and what was downloaded from it stay: they are the machine's, and decide nothing about resolution.
  process.env['npm_config_userconfig'] ??= join(homedir(), '.npmrc')
  process.env['npm_config_cache'] ??= join(homedir(), process.platform === 'win32' ? 'AppData/Local/npm-cache' : '.npm')
  for (const name of ['HOME', 'USERPROFILE']) process.env[name] = home
  for (const name of ['TMPDIR', 'TEMP', 'TMP']) process.env[name] = temporary
  delete process.env['NODE_PATH']
  return () => rmSync(place, { recursive: true, force: true, maxRetries: 5 })
}

/** A new folder in the first of these that has no packages in or above it. */
export function freshPlace(candidates: readonly string[]): string {
  const found = candidates.find((folder) => existsSync(folder) && packagesAbove(folder).length === 0)
  if (found !== undefined) return mkdtempSync(join(realpathSync(found), 'uamp-'))
  const packages = candidates.flatMap(packagesAbove).join(', ')
  throw new Error(`Tests would find packages that are not the clone's: remove ${packages}, or set TMPDIR to a folder without any above it`)
}

/** Every `node_modules` that a program in this folder would look into. */
export function packagesAbove(folder: string): string[] {
  if (!existsSync(folder)) return []
  const path = realpathSync(folder)
  const here = join(path, 'node_modules')
  return [...(existsSync(here) ? [here] : []), ...(dirname(path) === path ? [] : packagesAbove(dirname(path)))]
}
