// @ts-check
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { build, isStale, root } from './build.js'

const main = join(root, 'dist/cli/main.js')
const canBuild = existsSync(join(root, 'node_modules/typescript'))

if (!existsSync(main) && !canBuild) {
  console.error('There is nothing to start yet: run `npm install` first.')
  process.exit(1)
}
if (canBuild && isStale()) {
  console.error('Building …')
  // Whoever changes the code checks it with `npm run check`; who starts a server waits for it.
  if (!(await build({ check: false }))) process.exit(1)
}

// In this process, so that signals reach the server.
process.argv.splice(1, 1, main, 'serve')
await import(pathToFileURL(main).href)
