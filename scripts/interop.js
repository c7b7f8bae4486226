// @ts-check
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './build.js'

/**
 * Official clients have a package.json of their own, so that users need not install them. So do the runtimes, which only the long
 * trials need: they are large.
 *
 * @returns {Promise<boolean>}
 */
export async function installInterop() {
  const isLong = process.env['UAMP_TRIALS'] === 'long' && process.platform === 'linux' && process.arch === 'x64'
  const installed = await Promise.all(['test/interop', ...(isLong ? ['test/runtimes'] : [])].map(install))
  return installed.every(Boolean)
}

/** @param {string} name @returns {Promise<boolean>} */
async function install(name) {
  const folder = join(root, name)
  const installed = join(folder, 'node_modules/.installed')
  const fingerprint = () => {
    const hash = createHash('sha256')
    for (const path of ['package.json', 'package-lock.json'].map((name) => join(folder, name)))
      if (existsSync(path)) hash.update(readFileSync(path))
    return hash.digest('hex')
  }
  if (existsSync(installed) && readFileSync(installed, 'utf8') === fingerprint()) return true
  console.log(`Installing the packages of ${name} …`)
  const npm = spawn('npm', ['install', '--prefix', folder, '--no-audit', '--no-fund'], {
    cwd: folder,
    stdio: 'inherit',
    shell: process.platform === 'win32',
  })
  const [status] = await once(npm, 'exit')
  if (status === 0) writeFileSync(installed, fingerprint())
  return status === 0
}
