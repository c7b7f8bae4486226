// @ts-check
import { existsSync } from 'node:fs'
import { cpus } from 'node:os'
import { parseArgs } from 'node:util'
import { measure } from './lib/measure.js'
import { number, table, thousands } from './lib/table.js'
import { singleTarget, targetRow, throughputTargets } from './lib/targets.js'
import { a2a } from './scenarios/a2a.js'
import { gateway } from './scenarios/gateway.js'
import { hosted } from './scenarios/hosted.js'
import { identity } from './scenarios/identity.js'
import { payments } from './scenarios/payments.js'
import { signing } from './scenarios/signing.js'
import { SINGLE } from './scenarios/single.js'
import { installedSize } from './scenarios/size.js'
import { throughput } from './scenarios/throughput.js'
import { tls } from './scenarios/tls.js'
import { best, inMemory, naive, responses, sqlite, template } from './servers/index.js'

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    only: { type: 'string' },
    'cpu-prof': { type: 'string' },
  },
})
const { quick, only } = values
const execArgv = values['cpu-prof'] ? ['--cpu-prof', `--cpu-prof-dir=${values['cpu-prof']}`] : []
const built = existsSync(new URL('../dist/.built', import.meta.url))
const say = (/** @type {string} */ text) => process.stdout.write(`${text}\n`)
const tell = (/** @type {string} */ text) => process.stderr.write(`${text}\n`)

if (!built) tell('dist/ is not built: the controls only. Run `npm run build`.')
const servers = built ? [naive, best, sqlite, inMemory] : [naive, best]
/** The limit of the machine is shown where it is written down: it takes a template for each message of a protocol. */
const TEMPLATED = new Set(['ws', 'sse', 'completions'])
const serversOf = (/** @type {{ transport: string }} */ { transport }) => (TEMPLATED.has(transport) ? [...servers, template] : servers)
const began = performance.now()

/** @type {Map<string, import('./lib/measure.js').Row[]>} */
const results = new Map()
/** @type {string[]} */
const notes = []
/** @type {import('./lib/targets.js').Target[]} */
const targets = []

for (const scenario of throughput({ quick })) {
  await attempt(scenario.name, async () => {
    const ofResponses = scenario.transport === 'responses'
    if (ofResponses && !built) return
    const [measured, control] = ofResponses ? [[responses.control, ...responses.held], responses.control] : [serversOf(scenario), best]
    results.set(scenario.name, await measure(measured, scenario, { control, execArgv }))
  })
}
for (const group of built ? [gateway, a2a, identity, signing, payments, hosted, tls] : []) {
  for (const [name, rows] of await group({ quick, execArgv, attempt })) results.set(name, rows)
}
targets.push(...throughputTargets(results))
if (built) {
  for (const [name, run] of Object.entries(SINGLE)) {
    await attempt(name, async () => {
      const outcome = await run({ quick, tell })
      notes.push(...outcome.notes)
      targets.push(...outcome.targets)
    })
  }
}
await attempt('size', async () => {
  const { megabytes, packages } = await installedSize()
  notes.push(`production dependencies: ${number(megabytes, 1)} MB in ${packages} packages`)
  targets.push(singleTarget('production dependencies', megabytes))
})

say(`Node ${process.version}, ${cpus().length} × ${cpus()[0]?.model ?? 'unknown CPU'}${quick ? ', quick: too short to compare' : ''}\n`)
const rows = [...results].flatMap(([name, list]) =>
  list.map((row) => [
    name,
    row.server.name,
    row.server.store,
    thousands(row.rate),
    number(row.rateRatio),
    number(row.cpu),
    number(row.cpuRatio),
    `${number(row.p50, 1)} / ${number(row.p99, 1)}`,
    number(row.clientCpu),
  ]),
)
const head = ['scenario', 'server', 'store', 'events/s', 'ratio', 'CPU µs/event', 'CPU ratio', 'first delta p50/p99 ms', 'client µs/event']
if (rows.length) say(`${table(head, rows)}\n`)
if (notes.length) say(`${notes.map((note) => `- ${note}`).join('\n')}\n`)
if (targets.length) say(table(['target', 'got', 'need', 'verdict', ''], targets.map(targetRow), 1))
say(`\n${number((performance.now() - began) / 1000, 0)} s`)

/** One scenario that breaks does not cost the results of the others. @param {string} name @param {() => Promise<void>} run */
async function attempt(name, run) {
  if (only && name !== only && !name.startsWith(`${only} `)) return
  tell(`${name} …`)
  try {
    await run()
  } catch (error) {
    process.exitCode = 1
    notes.push(`${name} FAILED: ${error instanceof Error ? error.message.split('\n')[0] : error}`)
    tell(String(error instanceof Error ? error.stack : error))
  }
}
