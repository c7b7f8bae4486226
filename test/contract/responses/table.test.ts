import { expect, test } from 'vitest'
import { FAULTS } from './known-faults.ts'
import { SHAPES } from './shapes.ts'
import { cells, verdictOf } from './table.ts'
import { MODES } from './transport.ts'
import { TRANSPORTS } from './transports/index.ts'

test('every shape has a verdict over every transport in every mode', () => {
  const verdicts = cells().map(verdictOf)
  expect(verdicts).toHaveLength(Object.keys(SHAPES).length * TRANSPORTS.length * MODES.length)
  for (const verdict of verdicts) {
    if ('no' in verdict) expect(verdict.no).not.toBe('')
    else expect(verdict.seen.end).not.toBe('')
  }
})

test('every limit changes what some cell shows, and every known fault is in a cell that there is', () => {
  const verdicts = cells().map((cell) => ({ ...cell, verdict: verdictOf(cell) }))
  for (const transport of TRANSPORTS) {
    const own = verdicts.filter((cell) => cell.transport === transport)
    const reasons = new Set(own.flatMap(({ verdict }) => ('no' in verdict ? [verdict.no] : verdict.because)))
    for (const { why } of transport.limits) expect(reasons, transport.name).toContain(why)
  }
  for (const { shape, cells: places } of FAULTS)
    for (const [name, modes] of Object.entries(places))
      for (const mode of modes) {
        const found = verdicts.find((cell) => cell.transport.name === name && cell.shape === shape && cell.mode === mode)
        expect(found?.verdict, `${name}, ${shape}, ${mode}`).toHaveProperty('seen')
      }
})
