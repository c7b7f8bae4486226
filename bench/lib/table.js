// @ts-check

/**
 * A markdown table with aligned columns: the first ones to the left, numbers to the right.
 *
 * @param {readonly string[]} head
 * @param {readonly (readonly string[])[]} rows
 * @param {number} [left] how many columns are words
 */
export function table(head, rows, left = 3) {
  const widths = head.map((title, i) => Math.max(title.length, 3, ...rows.map((row) => row[i]?.length ?? 0)))
  const line = (/** @type {readonly string[]} */ cells) =>
    `| ${widths.map((width, i) => (i < left ? (cells[i] ?? '').padEnd(width) : (cells[i] ?? '').padStart(width))).join(' | ')} |`
  const rule = `|${widths.map((width, i) => (i < left ? '-'.repeat(width + 2) : `${'-'.repeat(width + 1)}:`)).join('|')}|`
  return [line(head), rule, ...rows.map(line)].join('\n')
}

/** @param {number | undefined} value @param {number} [digits] */
export const number = (value, digits = 2) => (value === undefined || Number.isNaN(value) ? '–' : value.toFixed(digits))

/** @param {number} value */
export const thousands = (value) =>
  Math.round(value)
    .toString()
    .replace(/\B(?=(\d{3})+$)/g, ',')
