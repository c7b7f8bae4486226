// @ts-check
import { installedSize } from './scenarios/size.js'
import { startUp } from './scenarios/start.js'

const { ready, answer } = await startUp({ runs: 10 })
const { megabytes, packages } = await installedSize()
process.stdout.write(`ready after ${ready.toFixed(0)} ms, first answer after ${answer.toFixed(0)} ms (medians of 10 starts)\n`)
process.stdout.write(`production dependencies: ${megabytes.toFixed(1)} MB in ${packages} packages\n`)
