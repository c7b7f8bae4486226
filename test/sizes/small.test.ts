import { describe, expect, test } from 'vitest'
import { isLarge, nameOf, pairedCells } from './cells.ts'
import { runCell } from './run-cell.ts'

// Most of their time is spent in waiting.
describe.concurrent('answers arrive byte for byte, or end in a clear error', () => {
  test.each(
    pairedCells()
      .filter((cell) => !isLarge(cell))
      .map((cell) => [nameOf(cell), cell] as const),
  )('%s', async (_, cell) => {
    const { kind, detail } = await runCell(cell)
    expect(['same', 'limit'], `${kind}: ${detail}`).toContain(kind)
  })
})
