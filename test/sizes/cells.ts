import { DRIVERS } from './drivers/index.ts'
import { MANY_DELTAS, SHAPES, SIZES, type Shape, type SizeName } from './said.ts'

/** `slow`: throttled at the socket. `stops`: stands still for longer than the server waits, then reads on. */
export const READERS = ['fast', 'slow', 'stops'] as const
export type ReaderKind = (typeof READERS)[number]

export interface Cell {
  readonly transport: string
  readonly size: SizeName
  readonly shape: Shape
  readonly reader: ReaderKind
  readonly streamed: boolean
  readonly stored: boolean
  /** The agent speaks instead of writing. */
  readonly sound: boolean
}

/** What is combined in pairs. Whether it is spoken is the transport's affair. */
const DIMENSIONS = ['transport', 'size', 'shape', 'reader', 'streamed', 'stored'] as const

/** Every combination that there is. */
export function allCells(): Cell[] {
  const cells: Cell[] = []
  for (const { name: transport, choices, sound = false } of DRIVERS)
    for (const { streamed, stored } of choices)
      for (const shape of SHAPES)
        for (const size of Object.keys(SIZES) as SizeName[])
          for (const reader of READERS)
            if (size !== MANY_DELTAS || shape === 'many deltas') cells.push({ transport, size, shape, reader, streamed, stored, sound })
  return cells
}

/**
 * Few cells in which any two values of two dimensions that can meet do meet. Always the same ones: of those that bring most, the
 * cheapest, and of equals the one whose values were used least.
 */
export function pairedCells(): Cell[] {
  const candidates = allCells().map((cell) => ({ cell, pairs: pairsOf(cell), cost: costOf(cell) }))
  const missing = new Set(candidates.flatMap(({ pairs }) => pairs))
  const uses = new Map<string, number>()
  const chosen: Cell[] = []
  while (missing.size > 0) {
    let best: { cell: Cell; pairs: readonly string[]; worth: number } | undefined
    for (const { cell, pairs, cost } of candidates) {
      const gain = pairs.filter((pair) => missing.has(pair)).length
      if (gain === 0) continue
      const worth = gain * 1000 - cost * 100 - (uses.get(cell.shape) ?? 0) - (uses.get(cell.reader) ?? 0)
      if (worth > (best?.worth ?? -Infinity)) best = { cell, pairs, worth }
    }
    if (!best) break
    const { cell, pairs } = best
    chosen.push(cell)
    for (const pair of pairs) missing.delete(pair)
    for (const value of [cell.shape, cell.reader]) uses.set(value, (uses.get(value) ?? 0) + 1)
  }
  return chosen
}

/** Which of the large ones take longer than others, about. */
function costOf(cell: Cell): number {
  if (!isLarge(cell)) return 0
  return (cell.reader === 'fast' ? 0 : 2) + (cell.shape === 'many deltas' ? 1 : 0) + (cell.streamed ? 1 : 0)
}

function pairsOf(cell: Cell): string[] {
  const values = DIMENSIONS.map((name) => `${name} ${cell[name]}`)
  return values.flatMap((one, index) => values.slice(index + 1).map((other) => `${one}, ${other}`))
}

/** Those take seconds, and much memory: one at a time. */
export const isLarge = ({ size }: Cell): boolean => SIZES[size] > 2 * SIZES['1 MiB'] || size === MANY_DELTAS

export const nameOf = ({ transport, size, shape, reader, streamed, stored }: Cell): string =>
  [transport, size, shape, reader, streamed ? 'streamed' : 'whole', stored ? 'stored' : 'not stored'].join(', ')
