// @ts-check
import { parseArgs } from 'node:util'
import { HTTP } from './spenders/http.js'
import { SOCKETS } from './spenders/sockets.js'
import { Trial } from './trial.js'
import { Violation } from '../support/violation.js'

const NAMES = [...Object.keys(HTTP), ...Object.keys(SOCKETS)]
const HELP = `node test/money/run.js [options]

Many clients spend from one token while the server is killed again and again, and then the sums are checked.

  --spends N      answers that are paid for; default 10000
  --seed S        where the choices begin; default: the clock's
  --only a,b      these clients alone: ${NAMES.join(', ')}
  --counts        tells how often each outcome came
`
const { values } = parseArgs({
  options: {
    spends: { type: 'string', default: '10000' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    only: { type: 'string', default: NAMES.join(',') },
    counts: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})
const say = (/** @type {string} */ text) => process.stdout.write(`${text}\n`)

if (values.help) say(HELP)
else process.exitCode = await run()

async function run() {
  const names = values.only.split(',')
  const unknown = names.find((name) => !NAMES.includes(name))
  if (unknown !== undefined) throw new Error(`There is no client "${unknown}": ${NAMES.join(', ')}`)
  const began = Date.now()
  try {
    const { books, kills, stops, lives } = await Trial.run({ seed: Number(values.seed), spends: Number(values.spends), names })
    const seconds = ((Date.now() - began) / 1000).toFixed(1)
    if (values.counts)
      for (const [what, times] of [...books.counts].toSorted(([one], [other]) => one.localeCompare(other))) say(`${times} × ${what}`)
    say(`seed ${values.seed}: ${books.done} answers paid, ${lives} lives, ${kills - stops} killed, ${stops} stopped, ${seconds} s`)
    say('no money was lost or made')
    return 0
  } catch (thrown) {
    say(thrown instanceof Violation ? `BROKEN ${thrown.message}` : String(thrown instanceof Error ? thrown.stack : thrown))
    say(`again: node test/money/run.js --seed ${values.seed} --spends ${values.spends}`)
    return 1
  }
}
