import { describe, expect, test } from 'vitest'
import { isLong } from '../support/trials.ts'
import { allCells, isLarge, nameOf, pairedCells } from './cells.ts'
import { runCell } from './run-cell.ts'

/** Cells that broke once and that the pairs leave out: readers were cut while they read, because the end is written in one piece. */
const BROKE: ReadonlySet<string> = new Set([
  'Responses, 60 MiB, the rest at the end, slow, streamed, not stored',
  'Responses, WebSocket, 60 MiB, the rest at the end, fast, streamed, stored',
])

/** Larger ones, and those of many deltas, take most of the time, and are for long trials. */
const paired = pairedCells().filter((cell) => isLarge(cell) && (isLong || cell.size === '5 MiB'))
const names = new Set(paired.map(nameOf))
const broke = allCells().filter((cell) => isLong && BROKE.has(nameOf(cell)) && !names.has(nameOf(cell)))

describe('large answers arrive byte for byte, or end in a clear error', () => {
  test.each([...paired, ...broke].map((cell) => [nameOf(cell), cell] as const))('%s', { timeout: 240_000 }, async (_, cell) => {
    const { kind, detail } = await runCell(cell)
    expect(['same', 'limit'], `${kind}: ${detail}`).toContain(kind)
  })
})
