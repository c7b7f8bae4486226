#!/usr/bin/env node
import { nodeMistake } from './node-version.ts'

const mistake = nodeMistake(process.version)
if (mistake !== undefined) {
  process.stderr.write(`error: ${mistake}\n`)
  process.exit(1)
}
// Loaded only now: an old Node does not know all that the rest imports.
const { run } = await import('./program.ts')
await run(process.argv.slice(2))
