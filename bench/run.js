// @ts-check
import { existsSync } from 'node:fs'
import { cpus } from 'node:os'
import { parseArgs } from 'node:util'
import { measure } from './lib/measure.js'
import { number, table, thousands } from './lib/table.js'
import { targetRow, throughputTargets } from './lib/targets.js'
import { a2a, taskList } from './scenarios/a2a.js'
import { cancel } from './scenarios/cancel.js'
import { endurance } from './scenarios/endurance.js'
import { gateway } from './scenarios/gateway.js'
import { memory } from './scenarios/memory.js'
import { installedSize } from './scenarios/size.js'
import { slowReaders } from './scenarios/slow-readers.js'
import { startUp } from './scenarios/start.js'
import { throughput } from './scenarios/throughput.js'
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
const built = existsSync(new URL('../dist/compose/index.js', import.meta.url))
const say = (/** @type {string} */ text) => process.stdout.write(`${text}\n`)
const tell = (/** @type {string} */ text) => process.stderr.write(`${text}\n`)
const kilobytes = (/** @type {number} */ bytes) => `${(bytes / 1000).toFixed(1)} kB`

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
if (built) for (const [name, rows] of await gateway({ quick, execArgv, attempt })) results.set(name, rows)
if (built) for (const [name, rows] of await a2a({ quick, execArgv, attempt })) results.set(name, rows)
targets.push(...throughputTargets(results))
if (built) {
  for (const store of /** @type {const} */ (['memory', 'sqlite'])) {
    await attempt(`a2a list, ${store}`, async () => {
      const sizes = { few: 100, many: quick ? 1000 : 10_000 }
      const { few, many } = await taskList({ ...sizes, store })
      notes.push(`a page of tasks, ${store}: ${number(few)} ms among ${sizes.few}, ${number(many)} ms among ${thousands(sizes.many)}`)
      targets.push({ target: `a2a list, ${store}: a page among many to one among few`, got: many / few, need: 2, atMost: true })
    })
  }
  await attempt('memory', async () => {
    const sessions = quick ? 500 : 5000
    const { socket, session, beyond } = await memory({ sessions })
    notes.push(
      `memory per idle connection at ${sessions}: bare socket ${kilobytes(socket.rss)} (heap ${kilobytes(socket.heap)}), ` +
        `session after a response ${kilobytes(session.rss)} (heap ${kilobytes(session.heap)})`,
    )
    targets.push({ target: 'idle session beyond its socket', got: beyond.rss / 1000, need: 8, atMost: true, unit: 'kB' })
  })
  await attempt('memory readers', async () => {
    const sizes = quick ? { still: 20, reading: 2, seconds: 3 } : { still: 200, reading: 10, seconds: 20 }
    for (const { kind, readers, peak } of await slowReaders({ ...sizes, tell })) {
      notes.push(`${readers} answers of 16 MB, ${kind}: at most ${thousands(peak / 1e6)} MB resident`)
      if (!quick) targets.push({ target: `large answers, ${kind}: resident`, got: peak / 1e6, need: 1500, atMost: true, unit: 'MB' })
    }
  })
  await attempt('memory gateway', async () => {
    for (const { kind, points, heap, rss } of await endurance({ responses: quick ? 1000 : 50_000, tell })) {
      const last = points.at(-1)
      notes.push(
        `a gateway after ${thousands(last?.responses ?? NaN)} responses, ${kind}: heap ${kilobytes(last?.heap ?? NaN)}, ` +
          `resident ${kilobytes(last?.rss ?? NaN)}; more with each: heap ${number(heap, 0)} bytes, resident ${number(rss, 0)}`,
      )
      // Whatever is kept of a response is larger than that. A process that has just started still grows.
      if (!quick) targets.push({ target: `gateway, ${kind}: heap kept per response`, got: heap, need: 50, atMost: true, unit: 'bytes' })
    }
  })
  await attempt('cancel', async () => {
    const { p50, p99 } = await cancel({ runs: quick ? 20 : 200 })
    notes.push(`cancel of an endless answer: p50 ${number(p50)} ms, p99 ${number(p99)} ms`)
    targets.push({ target: 'cancel, p99', got: p99, need: 100, atMost: true, unit: 'ms' })
  })
  await attempt('start', async () => {
    const { ready, answer } = await startUp({ runs: quick ? 1 : 10 })
    notes.push(`start: ready after ${number(ready, 0)} ms, first answer after ${number(answer, 0)} ms`)
    targets.push({ target: 'ready after process start', got: ready, need: 250, atMost: true, unit: 'ms' })
  })
}
await attempt('size', async () => {
  const { megabytes, packages } = await installedSize()
  notes.push(`production dependencies: ${number(megabytes, 1)} MB in ${packages} packages`)
  targets.push({ target: 'production dependencies', got: megabytes, need: 60, atMost: true, unit: 'MB' })
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
