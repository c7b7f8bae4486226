// @ts-check
import { number } from './table.js'

/** @typedef {import('./measure.js').Row} Row */
/** @typedef {{ target: string, got: number, need: number, atMost?: boolean, unit?: string, note?: string }} Target */

/** @param {Target} target */
const reached = ({ got, need, atMost }) => (atMost ? got <= need : got >= need)

/** @param {Target} target @returns {string[]} */
export function targetRow(target) {
  const { got, need, atMost, unit = '', note = '' } = target
  return [target.target, number(got), `${atMost ? '≤' : '≥'} ${need}${unit && ` ${unit}`}`, reached(target) ? 'reached' : 'MISSED', note]
}

/** What is asked of a row, and what we aim for. @param {number} got @param {{ need: number, aim: number }} goal */
const goal = (got, { need, aim }) => ({ got, need, note: got >= aim ? `and the aim of ${aim}` : `aim ${aim}` })

/**
 * What is not a rate, and may be at most so much; `least`: at least.
 *
 * @type {Record<string, { need: number, aim?: number, unit?: string, least?: boolean }>}
 */
const SINGLE = {
  'a2a list': { need: 2 },
  'gap between deltas, alone: p99.9': { need: 15, unit: 'ms' },
  'gap between deltas, beside four 16 MB answers: p99.9': { need: 50, unit: 'ms' },
  'gap between deltas, beside lists: p99.9': { need: 50, unit: 'ms' },
  'share delivered': { need: 1, least: true },
  'idle session beyond its socket': { need: 8, aim: 5, unit: 'kB' },
  'large answers': { need: 1500, unit: 'MB' },
  // Whatever is kept of a response is larger than that.
  'heap kept per response': { need: 50, unit: 'bytes' },
  'cancel, p99': { need: 100, unit: 'ms' },
  'file growth per 1,000 small stored responses': { need: 1.5, aim: 1, unit: 'MB' },
  'ready after process start': { need: 250, aim: 200, unit: 'ms' },
  'production dependencies': { need: 60, unit: 'MB' },
}

/** @param {string} kind @param {number} got @param {string} [target] its name, where several are of this kind @returns {Target} */
export function singleTarget(kind, got, target = kind) {
  const asked = SINGLE[kind]
  if (!asked) throw new Error(`nothing is asked of ${kind}`)
  const { need, aim, unit, least = false } = asked
  const note = aim === undefined ? {} : { note: got <= aim ? `and the aim of ${aim}` : `aim ${aim}` }
  return { target, got, need, atMost: !least, ...(unit && { unit }), ...note }
}

const BURST = { ws: { need: 1.1, aim: 1.3 }, sse: { need: 1, aim: 1.2 } }
const TEMPLATE = { need: 0.55, aim: 0.7 }

/**
 * What the rows of the throughput scenarios are held to.
 *
 * @param {ReadonlyMap<string, readonly Row[]>} results
 * @returns {Target[]}
 */
export function throughputTargets(results) {
  /** @type {Target[]} */
  const targets = []
  for (const transport of /** @type {const} */ (['ws', 'sse'])) {
    const limit = controlOf(results, `${transport} burst 50`, 'bare, template')
    for (const { name, row } of ours(results, `${transport} burst 50`)) {
      targets.push({ target: `${name}: events/s to best bare`, ...goal(row.rateRatio, BURST[transport]) })
      targets.push({ target: `${name}: events/s to the template`, ...goal(row.rate / (limit?.rate ?? NaN), TEMPLATE) })
      targets.push({ target: `${name}: CPU, best bare to ours`, got: row.cpuRatio, need: 0.75 })
    }
    const bare = controlOf(results, `${transport} paced 200`, 'bare, best')
    for (const { name, row } of ours(results, `${transport} paced 200`)) {
      targets.push({ target: `${name}: first delta, p50 to best bare`, got: row.p50 / (bare?.p50 ?? NaN), need: 2, atMost: true })
    }
    for (const clients of [20, 200]) {
      for (const { name, row } of ours(results, `${transport} paced ${clients}`)) {
        targets.push({ target: `${name}: CPU, ours to best bare`, got: 1 / row.cpuRatio, need: 1.2, atMost: true })
      }
    }
    const few = ours(results, `${transport} burst 10`)
    for (const [i, { name, row }] of ours(results, `${transport} burst 2000`).entries()) {
      const reference = few[i]?.row
      if (!reference) continue
      targets.push({ target: `${name}: events/s ratio to that at 10`, got: row.rateRatio / reference.rateRatio, need: 0.8 })
      targets.push({ target: `${name}: CPU ratio to that at 10`, got: row.cpuRatio / reference.cpuRatio, need: 0.8 })
    }
  }
  return [
    ...targets,
    ...openAiTargets(results),
    ...interactiveTargets(results),
    ...gatewayTargets(results),
    ...a2aTargets(results),
    ...identityTargets(results),
    ...signingTargets(results),
    ...paymentTargets(results),
    ...hostedTargets(results),
  ]
}

/** @param {ReadonlyMap<string, readonly Row[]>} results @returns {Target[]} */
function openAiTargets(results) {
  /** @type {Target[]} */
  const targets = []
  for (const { name, row } of ours(results, 'completions burst 16')) {
    targets.push({ target: `${name}: events/s to best bare`, ...goal(row.rateRatio, { need: 1.1, aim: 1.3 }) })
    const control = controlOf(results, 'completions burst 16', 'bare, best')
    targets.push({
      target: `${name}: first chunk, p50 beyond best bare`,
      got: row.p50 - (control?.p50 ?? NaN),
      need: 1,
      atMost: true,
      unit: 'ms',
    })
  }
  for (const { name, row } of ours(results, 'completions once 16')) {
    targets.push({ target: `${name}: requests/s to best bare`, ...goal(row.rateRatio, { need: 0.5, aim: 0.65 }) })
  }
  for (const { name, row } of ours(results, 'responses burst 16')) {
    targets.push({ target: `${name}: events/s to our completions`, ...goal(row.rateRatio, { need: 0.8, aim: 0.9 }) })
  }
  return targets
}

/** By transport and store. @type {Record<string, { need: number, aim: number }>} */
const INTERACTIVE = {
  'ag-ui sqlite': { need: 0.45, aim: 0.6 },
  'ag-ui memory': { need: 0.6, aim: 0.75 },
}

/** @param {ReadonlyMap<string, readonly Row[]>} results @returns {Target[]} */
function interactiveTargets(results) {
  return ['ag-ui', 'acp', 'omnia'].flatMap((transport) =>
    ours(results, `${transport} burst 16`).map(({ name, row }) => ({
      target: `${name}: events/s to best bare`,
      ...goal(row.rateRatio, INTERACTIVE[`${transport} ${row.server.store}`] ?? { need: 0.45, aim: 0.75 }),
    })),
  )
}

/** Responses per second of CPU time, to a pass-through that looks at nothing and to a peer. */
const GATEWAY = [
  { name: 'gateway split 16', pass: { need: 0.6, aim: 0.75 }, peer: { need: 2, aim: 2.2 } },
  { name: 'gateway burst 16', peer: { need: 3, aim: 4 } },
  { name: 'gateway once 16', pass: { need: 0.5, aim: 0.65 }, peer: { need: 4, aim: 5 } },
  { name: 'gateway long once 16', pass: { need: 0.45, aim: 0.6 }, peer: { need: 4, aim: 5 } },
]

/** @param {ReadonlyMap<string, readonly Row[]>} results @returns {Target[]} */
function gatewayTargets(results) {
  return GATEWAY.flatMap(({ name: scenario, pass, peer }) => {
    const other = controlOf(results, scenario, 'portkey')
    return ours(results, scenario).flatMap(({ name, row }) => [
      ...(pass ? [{ target: `${name}: per CPU-second, to the pass-through`, ...goal(row.cpuRatio, pass) }] : []),
      ...(other ? [{ target: `${name}: per CPU-second, to Portkey`, ...goal(row.cpuRatio / other.cpuRatio, peer) }] : []),
    ])
  })
}

/** @param {ReadonlyMap<string, readonly Row[]>} results @returns {Target[]} */
function a2aTargets(results) {
  return [
    { scenario: 'a2a burst 32', what: 'events', sqlite: { need: 2, aim: 10 }, memory: { need: 2, aim: 10 } },
    { scenario: 'a2a once 32', what: 'tasks', sqlite: { need: 1.2, aim: 2 }, memory: { need: 2, aim: 3 } },
  ].flatMap(({ scenario, what, sqlite, memory }) => {
    const sdk = controlOf(results, scenario, '@a2a-js/sdk')
    return ours(results, scenario).flatMap(({ name, row }) => [
      { target: `${name}: ${what}/s to the official SDK`, ...goal(row.rateRatio, row.server.store === 'sqlite' ? sqlite : memory) },
      { target: `${name}: first event, p50 to the official SDK`, got: row.p50 / (sdk?.p50 ?? NaN), need: 1, atMost: true },
    ])
  })
}

/** What a token may cost a request, in microseconds of CPU time. */
const TOKENS = [
  { server: 'uamp, static token', need: 5 },
  { server: 'uamp, known JWT', need: 5 },
  { server: 'uamp, new JWT', need: 100 },
]

/** @param {ReadonlyMap<string, readonly Row[]>} results @returns {Target[]} */
function identityTargets(results) {
  return TOKENS.flatMap(({ server, need }) => {
    const row = controlOf(results, 'identity once 16', server)
    return row ? [{ target: `${server}: CPU beyond no access`, got: row.cpuBeyond, need, atMost: true, unit: 'µs' }] : []
  })
}

/**
 * What a signed answer costs beyond an unsigned one: one signature outside of the event loop, and little on it. And what each delta of a
 * long answer costs there, among which the signature is next to nothing.
 *
 * @param {ReadonlyMap<string, readonly Row[]>} results
 * @returns {Target[]}
 */
function signingTargets(results) {
  const [alone] = results.get('signing signature') ?? []
  return ['ws', 'completions'].flatMap((transport) => {
    const clients = transport === 'ws' ? 50 : 16
    const [short, long] = ['short', 'long'].map((kind) => controlOf(results, `signing ${transport} ${kind} ${clients}`, 'uamp'))
    if (!short || !long) return []
    const name = `signed answer, ${transport}`
    const aside = (short.cpuBeyond - short.loopBeyond) / (alone?.cpu ?? NaN)
    return [
      ...(alone ? [{ target: `${name}: outside of the event loop, in signatures`, got: aside, need: 1.25, atMost: true }] : []),
      { target: `${name}: on the event loop`, got: short.loopBeyond, need: 150, atMost: true, unit: 'µs' },
      { target: `${name}: on the event loop for each delta`, got: long.loopBeyond, need: 0.05, atMost: true, unit: 'µs' },
    ]
  })
}

/** @param {ReadonlyMap<string, readonly Row[]>} results @returns {Target[]} */
function paymentTargets(results) {
  const row = controlOf(results, 'payments once 16', 'uamp, paid')
  if (!row) return []
  return [
    { target: 'paid answer, stored: time to an unpaid one', got: 1 / row.rateRatio, need: 1.3, atMost: true },
    { target: 'paid answer, stored: CPU to an unpaid one', got: 1 / row.cpuRatio, need: 1.3, atMost: true },
  ]
}

/** @param {ReadonlyMap<string, readonly Row[]>} results @returns {Target[]} */
function hostedTargets(results) {
  return ['hosted ws burst 50', 'hosted completions burst 16'].flatMap((scenario) =>
    ours(results, scenario).flatMap(({ name, row }) => [
      { target: `${name}: events/s to a local agent`, ...goal(row.rateRatio, { need: 0.5, aim: 0.7 }) },
      { target: `${name}: on the host's event loop, a local agent to it`, ...goal(row.loopRatio, { need: 0.5, aim: 0.7 }) },
    ]),
  )
}

/** @param {ReadonlyMap<string, readonly Row[]>} results @param {string} scenario */
function ours(results, scenario) {
  const rows = results.get(scenario) ?? []
  return rows.filter(({ server }) => server.name === 'uamp').map((row) => ({ name: `${scenario}, ${row.server.store}`, row }))
}

/** @param {ReadonlyMap<string, readonly Row[]>} results @param {string} scenario @param {string} name */
function controlOf(results, scenario, name) {
  return results.get(scenario)?.find(({ server }) => server.name === name)
}
