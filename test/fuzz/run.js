// @ts-check
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { CORPUS } from './corpus/index.js'
import { NAMES as FAULTS } from './processes/planted.js'
import { Trial } from './trial.js'

/** @typedef {import('./case.js').Case} Case */
/** @typedef {import('./trial.js').Finding} Finding */

const HELP = `npm run fuzz -- [options]

Sends what no client should to every endpoint of a server, and checks that nobody is harmed by it.

  --seconds T     how long, in all; default 600
  --seed S        where the choices begin; default: the clock's
  --only a,b      these transports alone: ${Object.keys(CORPUS).join(', ')}
  --case n,m      play only these cases of the seed, one after the other
  --statuses      tell how often each outcome came
  --plant FAULT   put a fault into the server, to see that it is found: ${FAULTS.join(', ')}
`
/** Cases of the server that needs a token have numbers from here on. */
const TOKENS_FROM = 10_000_000
/** A finding of the same kind is shown so often. */
const SHOWN = 2
/** Of a request so much is shown; all of it is in a file. */
const SHOWN_BYTES = 800

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '600' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    only: { type: 'string', default: Object.keys(CORPUS).join(',') },
    case: { type: 'string' },
    statuses: { type: 'boolean', default: false },
    plant: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
})
const say = (/** @type {string} */ text) => process.stdout.write(`${text}\n`)

if (values.help) say(HELP)
else process.exitCode = await run()

async function run() {
  const seed = number(values.seed)
  const names = values.only.split(',')
  const unknown = names.find((name) => !(name in CORPUS))
  if (unknown !== undefined) throw new Error(`There is no transport "${unknown}": ${Object.keys(CORPUS).join(', ')}`)
  const only = values.case?.split(',').map(number)
  const began = Date.now()
  /** @type {Map<string, number>} */
  const shown = new Map()
  /** @type {Map<string, number>} */
  const alike = new Map()
  let cases = 0
  for (const withTokens of [false, true]) {
    const mine = only?.filter((each) => each >= TOKENS_FROM === withTokens)
    if (mine?.length === 0) continue
    const first = withTokens ? TOKENS_FROM : 0
    const trial = await Trial.run({ seed, seconds: number(values.seconds) / 2, names, withTokens, first, only: mine, plant: values.plant })
    cases += trial.cases
    tell(trial, withTokens)
    for (const finding of trial.findings) report(finding)
    // One server is enough to see whether a fault is found.
    if (values.plant !== undefined) break
  }
  const seconds = (Date.now() - began) / 1000
  say(`seed ${seed}: ${cases} cases, ${seconds.toFixed(1)} s`)
  for (const [rule, times] of shown) say(`BROKEN ${times} times: ${rule}`)
  if (shown.size === 0) say('nobody was harmed')
  return shown.size === 0 ? 0 : 1

  /** @param {Finding} finding */
  function report({ rule, what, cases: suspects }) {
    shown.set(rule, (shown.get(rule) ?? 0) + 1)
    const kind = `${rule} ${signature(what)}`
    const times = (alike.get(kind) ?? 0) + 1
    alike.set(kind, times)
    if (times > SHOWN) return
    say(`\nBROKEN: ${rule}\n${what.slice(0, 3_000)}`)
    for (const each of suspects.slice(0, SHOWN)) show(each)
    const numbers = suspects.map((each) => each.number).join(',')
    const part = values.only === Object.keys(CORPUS).join(',') ? '' : ` --only ${values.only}`
    say(`again: npm run fuzz -- --seed ${seed}${part}${numbers === '' ? ` --seconds ${values.seconds}` : ` --case ${numbers}`}`)
  }
}

/** @param {Case} played */
function show({ number: at, entry, mode, outcomes, sent }) {
  say(`  case ${at}: ${entry.name}, token: ${mode}, ${outcomes.join(' ') || 'not over'}`)
  const bytes = Buffer.concat(sent)
  say(`  | ${JSON.stringify(bytes.toString('latin1', 0, SHOWN_BYTES))}${bytes.length > SHOWN_BYTES ? ` … ${bytes.length} bytes` : ''}`)
  if (bytes.length <= SHOWN_BYTES) return
  const file = join(mkdtempSync(join(tmpdir(), 'uamp-fuzz-case-')), `${at}.bin`)
  writeFileSync(file, bytes)
  say(`  all that was sent: ${file} (nc 127.0.0.1 8787 < it)`)
}

/** What is the same in two findings of one kind. @param {string} what */
function signature(what) {
  return what.replaceAll(/[\w-]*\d[\w-]*/g, '#').slice(0, 120)
}

/** @param {Trial} trial @param {boolean} withTokens */
function tell({ cases, talks, health, memory, outcomes }, withTokens) {
  const mib = (/** @type {number} */ bytes) => `${(bytes / 2 ** 20).toFixed(1)} MiB`
  const kept = memory ? `; ${mib(memory.before)} after the warm-up, ${mib(memory.after)} at the end` : ''
  const slow = health.excused + health.unconfirmed
  const excuse = slow > 0 ? ` (${slow} times slow on a busy machine)` : ''
  say(
    `${withTokens ? 'with tokens' : 'anonymous'}: ${cases} cases; a bystander was answered ${talks} times; ` +
      `/health ${health.times} times, at most ${health.mostMs} ms${excuse}${kept}`,
  )
  if (values.statuses)
    for (const [outcome, times] of [...outcomes].toSorted(([one], [other]) => one.localeCompare(other))) say(`  ${outcome}: ${times}`)
}

/** @param {string} given */
function number(given) {
  const read = Number(given)
  if (Number.isNaN(read) || read < 0) throw new Error(`"${given}" is no number`)
  return read
}
