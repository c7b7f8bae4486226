// @ts-check
import { existsSync } from 'node:fs'
import { relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { measure } from './lib/measure.js'
import { start } from './lib/process.js'
import { number, table, thousands } from './lib/table.js'
import { A2A_LOADS } from './scenarios/a2a.js'
import { GATEWAY_LOADS } from './scenarios/gateway.js'
import { throughput } from './scenarios/throughput.js'

/**
 * `npm run bench:against -- <folder> [--only name …]`: our server beside that of another checkout, which is built. The two take turns
 * in each round, so that a row says what a change did to it far more exactly than two runs of `npm run bench` do.
 */
const { values, positionals } = parseArgs({ options: { only: { type: 'string', multiple: true } }, allowPositionals: true })
const [folder] = positionals
if (folder === undefined || !existsSync(resolve(folder, 'dist'))) {
  process.stderr.write('Say which checkout to compare with: npm run bench:against -- <folder>. It must be built.\n')
  process.exit(2)
}
const theirs = relative(fileURLToPath(new URL('.', import.meta.url)), resolve(folder, 'bench'))

/** @typedef {import('./lib/measure.js').Load & { name: string }} Scenario */

/** @type {string[][]} */
const rows = []
for (const scenario of throughput({ quick: false })) {
  for (const store of ['sqlite', 'memory']) await compare(scenario, { file: 'servers/ours.js', args: [store], store })
}
for (const load of A2A_LOADS) {
  for (const store of ['sqlite', 'memory']) await compare(load, { file: 'servers/ours.js', args: [store], store })
}
for (const { upstream, ...load } of GATEWAY_LOADS) {
  const provider = await start('servers/upstream.js', { args: [upstream] })
  await compare(load, { file: 'servers/gateway.js', args: [String(provider.ready.port)], store: '–' })
  await provider.stop()
}
const head = ['scenario', 'store', 'events/s before', 'events/s now', 'ratio', 'CPU ratio', 'first delta p50 before / now']
process.stdout.write(`${table(head, rows, 2)}\n`)

/** @param {Scenario} scenario @param {{ file: string, args: string[], store: string }} server */
async function compare({ name, ...load }, { file, ...rest }) {
  if (values.only && !values.only.some((only) => name.startsWith(only))) return
  process.stderr.write(`${name}, ${rest.store} …\n`)
  const before = { name: 'before', file: `${theirs}/${file}`, ...rest }
  const measured = await measure([before, { name: 'now', file, ...rest }], load, { control: before })
  const [was, is] = measured
  if (!was || !is) return
  rows.push([
    name,
    rest.store,
    thousands(was.rate),
    thousands(is.rate),
    number(is.rateRatio),
    number(is.cpuRatio),
    `${number(was.p50, 1)} / ${number(is.p50, 1)}`,
  ])
}
