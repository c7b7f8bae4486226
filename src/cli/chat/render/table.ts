import { widthOf } from './width.ts'

/** The marks of a cell are left out, because they would be counted. */
const MARKS = /(\*\*|__|`|~~)(?=\S)(.+?)\1/g

/** The rows of a Markdown table as lines of text. If they do not fit, each cell has a line of its own. */
export function tableLines(source: readonly string[], columns: number): readonly string[] {
  const rows = source.map(cellsOf)
  const ruled = rows.findIndex((cells) => cells.length > 0 && cells.every((cell) => /^:?-+:?$/.test(cell)))
  const [head = [], ...body] = rows.filter((_, index) => index !== ruled)
  if (ruled !== 1) return source
  const count = Math.max(head.length, ...body.map((cells) => cells.length))
  const widths = Array.from({ length: count }, (_, at) => Math.max(...[head, ...body].map((cells) => widthOf(cells[at] ?? ''))))
  const whole = widths.reduce((sum, width) => sum + width, 0) + 3 * (count - 1)
  if (whole > columns) return body.flatMap((cells, index) => [...(index === 0 ? [] : ['']), ...listed(head, cells)])
  const isRight = (at: number): boolean => /^-+:$/.test(rows[ruled]?.[at] ?? '')
  const line = (cells: readonly string[]): string => widths.map((width, at) => padded(cells[at] ?? '', width, isRight(at))).join(' │ ')
  return [line(head).trimEnd(), widths.map((width) => '─'.repeat(width)).join('─┼─'), ...body.map((cells) => line(cells).trimEnd())]
}

function cellsOf(line: string): readonly string[] {
  const inside = line
    .trim()
    .replace(/^\|/, '')
    .replace(/(?<!\\)\|$/, '')
  return inside.split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll('\\|', '|').replaceAll(MARKS, '$2'))
}

function listed(head: readonly string[], cells: readonly string[]): readonly string[] {
  return cells.map((cell, at) => (head[at] ? `${head[at]}: ${cell}` : cell))
}

function padded(text: string, width: number, isRight: boolean): string {
  const space = ' '.repeat(Math.max(0, width - widthOf(text)))
  return isRight ? space + text : text + space
}
