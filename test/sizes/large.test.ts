import { describe, expect, test } from 'vitest'
import { isLarge, nameOf, pairedCells } from './cells.ts'
import { runCell } from './run-cell.ts'

describe('large answers arrive byte for byte, or end in a clear error', () => {
  test.each(
    pairedCells()
      .filter(isLarge)
      .map((cell) => [nameOf(cell), cell] as const),
  )('%s', { timeout: 240_000 }, async (_, cell) => {
    const { kind, detail } = await runCell(cell)
    expect(['same', 'limit'], `${kind}: ${detail}`).toContain(kind)
  })
})
