// @ts-check
import { parseArgs } from 'node:util'
import { TALKERS } from './talkers/index.js'
import { Violation } from '../support/violation.js'
import { World } from './world.js'

const HELP = `npm run chaos -- [options]

Kills a server again and again, and checks that nothing is lost and nothing is told twice.

  --rounds N      some kills in a row and a check after them; default 100
  --seconds T     begin no round after T seconds
  --seed S        where the choices begin; default: the clock's
  --only a,b      these talkers alone: ${Object.keys(TALKERS).join(', ')}
  --patience MS   how long anything may take on a server that lives; default 15000
  --go-on         do not stop at the first fault
`
/** A world, its data folder and its seed, is good for so many rounds: a fault is played again from the beginning of its world. */
const ROUNDS_OF_A_WORLD = 20
/** Worlds at a time: a start takes a core, and so do those who talk. */
const LANES = 2

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '100' },
    seconds: { type: 'string', default: 'Infinity' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    only: { type: 'string', default: Object.keys(TALKERS).join(',') },
    patience: { type: 'string', default: '15000' },
    'go-on': { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})
const say = (/** @type {string} */ text) => process.stdout.write(`${text}\n`)
const number = (/** @type {string} */ given) => {
  const read = Number(given)
  if (Number.isNaN(read) || read < 0) throw new Error(`"${given}" is no number`)
  return read
}

if (values.help) say(HELP)
else process.exitCode = await run()

async function run() {
  const rounds = number(values.rounds)
  const first = number(values.seed)
  const until = Date.now() + number(values.seconds) * 1000
  const names = values.only.split(',')
  const unknown = names.find((name) => !(name in TALKERS))
  if (unknown !== undefined) throw new Error(`There is no talker "${unknown}": ${Object.keys(TALKERS).join(', ')}`)
  const began = Date.now()
  const totals = { rounds: 0, kills: 0 }
  /** @type {Map<string, number>} */
  const faults = new Map()
  let left = rounds
  let worlds = 0

  const isOver = () => left <= 0 || Date.now() > until || (faults.size > 0 && !values['go-on'])
  const lane = async () => {
    while (!isOver()) {
      const many = Math.min(ROUNDS_OF_A_WORLD, left)
      left -= many
      const world = await World.begin({ seed: first + worlds++, names, patienceMs: number(values.patience) })
      try {
        while (world.round < many && (world.round === 0 || Date.now() < until) && (faults.size === 0 || values['go-on'])) {
          for (const fault of await world.play()) report(world, fault)
          totals.rounds++
        }
      } catch (thrown) {
        report(world, thrown)
      } finally {
        totals.kills += world.kills
        world.end()
      }
    }
  }
  await Promise.all(Array.from({ length: LANES }, lane))
  const seconds = ((Date.now() - began) / 1000).toFixed(1)
  say(`seed ${first}: ${totals.rounds} rounds, ${totals.kills} kills, ${names.length} talkers, ${seconds} s`)
  for (const [rule, times] of faults) say(`BROKEN ${times} times: ${rule}`)
  if (faults.size === 0) say('nothing was lost, and nothing told twice')
  return faults.size === 0 ? 0 : 1

  /** @param {World} world @param {unknown} fault */
  function report(world, fault) {
    const isViolation = fault instanceof Violation
    const rule = isViolation ? fault.rule : 'the trial itself works'
    faults.set(rule, (faults.get(rule) ?? 0) + 1)
    say(`\nBROKEN in round ${world.round} of seed ${world.seed}${isViolation ? `, ${fault.talker ?? 'server'}` : ''}`)
    say(isViolation ? fault.message : String(fault instanceof Error ? fault.stack : fault))
    if (isViolation && fault.transcript) say(fault.transcript.replaceAll(/^/gm, '  | '))
    const only = names.length < Object.keys(TALKERS).length ? ` --only ${names.join(',')}` : ''
    say(`again: npm run chaos -- --seed ${world.seed} --rounds ${world.round}${only}`)
  }
}
