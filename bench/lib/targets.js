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

/**
 * What the rows of the throughput scenarios are held to.
 *
 * @param {ReadonlyMap<string, readonly Row[]>} results
 * @returns {Target[]}
 */
export function throughputTargets(results) {
  /** @type {Target[]} */
  const targets = []
  for (const transport of ['ws', 'sse']) {
    for (const { name, row } of ours(results, `${transport} burst 50`)) {
      const note = row.rateRatio >= 1.2 ? 'and the aim of 1.2' : 'aim 1.2'
      targets.push({ target: `${name}: events/s to best bare`, got: row.rateRatio, need: 0.75, note })
      targets.push({ target: `${name}: CPU, best bare to ours`, got: row.cpuRatio, need: 0.75 })
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
  return [...targets, ...openAiTargets(results), ...interactiveTargets(results), ...gatewayTargets(results), ...a2aTargets(results)]
}

/** @param {ReadonlyMap<string, readonly Row[]>} results @returns {Target[]} */
function openAiTargets(results) {
  /** @type {Target[]} */
  const targets = []
  for (const { name, row } of ours(results, 'completions burst 16')) {
    const note = row.rateRatio >= 1.1 ? 'and the aim of 1.1' : 'aim 1.1'
    targets.push({ target: `${name}: events/s to best bare`, got: row.rateRatio, need: 0.7, note })
    const control = results.get('completions burst 16')?.find(({ server }) => server.name === 'bare, best')
    targets.push({
      target: `${name}: first chunk, p50 beyond best bare`,
      got: row.p50 - (control?.p50 ?? NaN),
      need: 1,
      atMost: true,
      unit: 'ms',
    })
  }
  for (const { name, row } of ours(results, 'completions once 16')) {
    targets.push({ target: `${name}: requests/s to best bare`, got: row.rateRatio, need: 0.5 })
  }
  for (const { name, row } of ours(results, 'responses burst 16')) {
    targets.push({ target: `${name}: events/s to our completions`, got: row.rateRatio, need: 0.8 })
  }
  return targets
}

/** @param {ReadonlyMap<string, readonly Row[]>} results @returns {Target[]} */
function interactiveTargets(results) {
  return ['ag-ui', 'acp', 'omnia'].flatMap((transport) =>
    ours(results, `${transport} burst 16`).map(({ name, row }) => ({
      target: `${name}: events/s to best bare`,
      got: row.rateRatio,
      need: 0.45,
    })),
  )
}

/** Responses per second of CPU time, to a pass-through that looks at nothing and to a peer. */
const GATEWAY = [
  { name: 'gateway split 16', pass: 0.6, aim: 0.75, peer: 2 },
  { name: 'gateway burst 16', peer: 3 },
  { name: 'gateway once 16', pass: 0.5, aim: 0.7, peer: 8 },
]

/** @param {ReadonlyMap<string, readonly Row[]>} results @returns {Target[]} */
function gatewayTargets(results) {
  return GATEWAY.flatMap(({ name, pass, aim, peer }) => {
    const rows = results.get(name) ?? []
    const row = rows.find(({ server }) => server.name === 'uamp')
    const other = rows.find(({ server }) => server.name === 'portkey')
    if (!row) return []
    const note = aim === undefined ? '' : row.cpuRatio >= aim ? `and the aim of ${aim}` : `aim ${aim}`
    return [
      ...(pass === undefined ? [] : [{ target: `${name}: per CPU-second, to the pass-through`, got: row.cpuRatio, need: pass, note }]),
      ...(other ? [{ target: `${name}: per CPU-second, to Portkey`, got: row.cpuRatio / other.cpuRatio, need: peer }] : []),
    ]
  })
}

/** @param {ReadonlyMap<string, readonly Row[]>} results @returns {Target[]} */
function a2aTargets(results) {
  return [
    { scenario: 'a2a burst 32', what: 'events' },
    { scenario: 'a2a once 32', what: 'tasks' },
  ].flatMap(({ scenario, what }) => {
    const sdk = results.get(scenario)?.find(({ server }) => server.name === '@a2a-js/sdk')
    return ours(results, scenario).flatMap(({ name, row }) => [
      { target: `${name}: ${what}/s to the official SDK`, got: row.rateRatio, need: 2 },
      { target: `${name}: first event, p50 to the official SDK`, got: row.p50 / (sdk?.p50 ?? NaN), need: 1, atMost: true },
    ])
  })
}

/** @param {ReadonlyMap<string, readonly Row[]>} results @param {string} scenario */
function ours(results, scenario) {
  const rows = results.get(scenario) ?? []
  return rows.filter(({ server }) => server.name === 'uamp').map((row) => ({ name: `${scenario}, ${row.server.store}`, row }))
}
