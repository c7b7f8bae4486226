// @ts-check
import { lstat, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** Megabytes on disk of the packages that a user's install brings: those of the lock file that are not for development. */
export async function installedSize() {
  const lock = JSON.parse(await readFile(join(ROOT, 'package-lock.json'), 'utf8'))
  const paths = Object.entries(lock.packages)
    .filter(([path, { dev, devOptional }]) => path !== '' && !dev && !devOptional)
    .map(([path]) => path)
  const sizes = await Promise.all(paths.map((path) => blocks(join(ROOT, path))))
  return { megabytes: sizes.reduce((sum, size) => sum + size, 0) / 1e6, packages: sizes.filter((size) => size > 0).length }
}

/** Nested `node_modules` are packages of their own. @param {string} path @returns {Promise<number>} */
async function blocks(path) {
  const entries = await readdir(path, { withFileTypes: true }).catch(() => [])
  const sizes = await Promise.all(
    entries
      .filter(({ name }) => name !== 'node_modules')
      .map(async (entry) => {
        const child = join(path, entry.name)
        return entry.isDirectory() ? blocks(child) : (await lstat(child)).blocks * 512
      }),
  )
  return sizes.reduce((sum, size) => sum + size, 0)
}
