// @ts-check
import { build, isStale } from './build.js'

// Built here and not by npm, so that nothing is built when nothing has changed.
if (isStale() && !(await build())) process.exit(1)
await import('../test/fuzz/run.js')
