import { READERS, type Cell } from './cells.ts'
import type { Outcome } from './run-cell.ts'
import { SIZES, type SizeName } from './said.ts'

const names = Object.keys(SIZES) as SizeName[]

/** All outcomes as a table in Markdown: a row for each way to ask and each way to say it, in a cell the three readers. */
export function table(outcomes: ReadonlyMap<Cell, Outcome>): string {
  const notes = new Map<string, string>()
  const rows = new Map<string, Map<string, string>>()
  for (const [cell, outcome] of outcomes) {
    const row = rows.get(rowOf(cell)) ?? new Map<string, string>()
    rows.set(rowOf(cell), row)
    row.set(`${cell.size} ${cell.reader}`, sign(outcome, notes))
  }
  const lines = [...rows].map(([title, row]) => {
    const cells = names.map((size) =>
      READERS.map((reader) => row.get(`${size} ${reader}`) ?? '')
        .join(' ')
        .trim(),
    )
    return `| ${[title, ...cells].join(' | ')} |`
  })
  const legend = [...notes].map(([note, letter]) => `- ${letter}: ${note}`)
  return [
    `| transport, asked how | agent says it in | ${names.join(' | ')} |`,
    `|---|---|${names.map(() => '---|').join('')}`,
    ...lines,
    '',
    `In each cell: a reader that is ${READERS.join(', one that is ').replace('is stops', 'stops')}. \`=\` is byte for byte.`,
    ...legend,
    '',
  ].join('\n')
}

function rowOf({ transport, shape, streamed, stored }: Cell): string {
  return `${transport}, ${streamed ? 'streamed' : 'whole'}, ${stored ? 'stored' : 'not stored'} | ${shape}`
}

function sign({ kind, detail }: Outcome, notes: Map<string, string>): string {
  if (kind === 'same') return '='
  if (kind !== 'limit') return `**${kind}**`
  const letter = notes.get(detail) ?? String.fromCharCode(0x61 + notes.size)
  notes.set(detail, letter)
  return letter
}
