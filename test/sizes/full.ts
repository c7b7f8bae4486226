import { writeFileSync } from 'node:fs'
import { allCells, isLarge, nameOf, READERS, type Cell } from './cells.ts'
import { runCell, type Outcome } from './run-cell.ts'
import { table } from './table.ts'

/** Cells that run at once. Those that wait for a reader cost nothing. */
const AT_ONCE = 8

export interface FullOptions {
  /** Only cells whose name holds each of these. */
  readonly filters: readonly string[]
  /** Told of each cell when it is done. */
  readonly onCell: (line: string) => void
  /** Where the table is kept as it grows. */
  readonly file: string | undefined
}

/** Runs every cell, and gives the table and how many cells failed. */
export async function runAll({ filters, onCell, file }: FullOptions): Promise<{ text: string; failed: number }> {
  const cells = allCells().filter((cell) => filters.every((filter) => nameOf(cell).includes(filter)))
  const done = new Map<Cell, Outcome>()
  const run = async (cell: Cell): Promise<void> => {
    const started = performance.now()
    const outcome = await runCell(cell)
    done.set(cell, outcome)
    const { kind, detail } = outcome
    onCell(
      `${done.size}/${cells.length} ${kind === 'lost' || kind === 'hang' ? 'FAIL' : 'ok'} ${nameOf(cell)}: ${kind} ${detail} (${Math.round(performance.now() - started)} ms)`,
    )
    if (file !== undefined && done.size % 50 === 0) writeFileSync(file, table(done))
  }
  await inLanes(
    cells.filter((cell) => !isLarge(cell)),
    run,
    AT_ONCE,
  )
  for (const reader of READERS)
    await inLanes(
      cells.filter((cell) => isLarge(cell) && cell.reader === reader),
      run,
      1,
    )
  const text = table(done)
  if (file !== undefined) writeFileSync(file, text)
  return { text, failed: [...done.values()].filter(({ kind }) => kind === 'lost' || kind === 'hang').length }
}

async function inLanes<T>(items: readonly T[], run: (item: T) => Promise<void>, lanes: number): Promise<void> {
  const rest = items[Symbol.iterator]()
  const lane = async (): Promise<void> => {
    for (let next = rest.next(); !next.done; next = rest.next()) await run(next.value)
  }
  await Promise.all(Array.from({ length: lanes }, lane))
}
