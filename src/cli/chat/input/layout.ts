import { rowsOf, widthOf } from '../render/width.ts'

export interface Layout {
  readonly rows: readonly string[]
  /** Where the cursor is. */
  readonly row: number
  readonly column: number
}

export interface LayoutOptions {
  readonly text: string
  readonly cursor: number
  readonly columns: number
  /** The rows of the screen. A longer text is shown around the cursor. */
  readonly height: number
  /** What the first row begins with. Others begin with as many spaces. */
  readonly prompt: string
}

/** Rows of the message that is being typed. */
export function layout({ text, cursor, columns, height, prompt }: LayoutOptions): Layout {
  const indent = widthOf(prompt)
  const width = Math.max(columns - 1 - indent, 2)
  const rows: string[] = []
  let place = { row: 0, column: 0 }
  let from = 0
  for (const line of text.replaceAll('\t', ' ').split('\n')) {
    const before = cursor - from
    if (before >= 0 && before <= line.length) {
      const above = rowsOf(line.slice(0, before), width)
      const last = widthOf(above.at(-1) ?? '')
      const isFull = last >= width
      place = { row: rows.length + above.length - (isFull ? 0 : 1), column: isFull ? 0 : last }
    }
    rows.push(...rowsOf(line, width))
    // The cursor may stand behind a row that is full.
    if (place.row === rows.length) rows.push('')
    from += line.length + 1
  }
  const shown = Math.max(1, height - 1)
  const first = Math.max(0, Math.min(place.row - shown + 1 + Math.floor(shown / 4), rows.length - shown))
  return {
    rows: rows.slice(first, first + shown).map((row, at) => (first + at === 0 ? prompt : ' '.repeat(indent)) + row),
    row: place.row - first,
    column: indent + place.column,
  }
}
