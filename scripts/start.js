// @ts-check
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { nodeMistake } from '../create-uamp/node-version.js'

const root = fileURLToPath(new URL('..', import.meta.url))
const main = join(root, 'dist/cli/main.js')
const canBuild = existsSync(join(root, 'node_modules/rolldown'))
const { engines } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))

const mistake =
  nodeMistake(process.version, engines.node) ??
  (canBuild || existsSync(main) ? undefined : 'There is nothing to start yet: run `npm install` first.')
if (mistake !== undefined) {
  console.error(mistake)
  process.exit(1)
}
if (canBuild) {
  // Loaded only now: an old Node, or a clone without its packages, cannot load what builds.
  const { build, isStale } = await import('./build.js')
  if (isStale()) {
    console.error('Building …')
    // Whoever changes the code checks it with `npm run check`; who starts a server waits for it.
    if (!(await build({ check: false }))) process.exit(1)
  }
}

// In this process, so that signals reach the server.
process.argv.splice(1, 1, main, 'serve')
await import(pathToFileURL(main).href)
