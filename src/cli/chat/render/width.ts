import { eastAsianWidth } from 'get-east-asian-width'

const SEGMENTS = new Intl.Segmenter(undefined, { granularity: 'grapheme' })
/** Segmenters take a step in a time that grows with the text, so that a long one is taken in pieces. */
const PIECE = 256
const ASCII = /^[\x20-\x7E]*$/
/** Characters that take no column of their own. */
const UNSEEN = /^[\p{Mn}\p{Me}\p{Cf}\p{Cc}]$/u

/** What a reader takes for characters: letters with their accents, and emoji of several code points. */
export function graphemes(text: string): readonly string[] {
  if (ASCII.test(text)) return text.split('')
  const found: string[] = []
  let from = 0
  while (from < text.length) {
    const parts = Array.from(SEGMENTS.segment(text.slice(from, from + PIECE)), ({ segment }) => segment)
    // The last one may go on in the next piece.
    if (from + PIECE < text.length && parts.length > 1) parts.pop()
    for (const part of parts) {
      found.push(part)
      from += part.length
    }
  }
  return found
}

/** The columns that a text takes on a terminal. It must be without control characters. */
export function widthOf(text: string): number {
  if (ASCII.test(text)) return text.length
  let width = 0
  for (const grapheme of graphemes(text)) width += widthOfGrapheme(grapheme)
  return width
}

function widthOfGrapheme(grapheme: string): number {
  const point = grapheme.codePointAt(0) ?? 0
  if (UNSEEN.test(String.fromCodePoint(point))) return 0
  // U+FE0F asks for the coloured form, which is wide.
  return grapheme.includes('\uFE0F') ? 2 : eastAsianWidth(point)
}

/** Cuts a text so that it takes at most so many columns. */
export function cut(text: string, columns: number): string {
  if (widthOf(text) <= columns) return text
  let shown = ''
  for (const grapheme of graphemes(text)) {
    if (widthOf(shown + grapheme) >= columns) break
    shown += grapheme
  }
  return columns < 1 ? '' : `${shown}…`
}

/** Cuts a text into rows of at most so many columns. There is always a first row. */
export function rowsOf(text: string, columns: number): readonly string[] {
  const rows = ['']
  let width = 0
  for (const grapheme of graphemes(text)) {
    const more = widthOf(grapheme)
    if (width + more > columns && width > 0) {
      rows.push('')
      width = 0
    }
    rows[rows.length - 1] += grapheme
    width += more
  }
  return rows
}
