// @ts-check

/** @typedef {import('./pages.js').Page} Page */

const EXCERPT = 150
/** How much a word counts in a title. In the text it counts once for each place, but never as much as in a heading. */
const WEIGHT = { page: 20, heading: 8 }
const REPEATED = 6

/** @param {string} text @returns {string[]} */
const wordsOf = (text) => text.toLowerCase().match(/[\p{L}\p{N}_]{2,}/gu) ?? []

/**
 * The sections of all pages, and for each word the sections that have it, as `[section, weight, section, weight …]`. It is a script and
 * not JSON, because a page that was opened from a folder may load scripts and nothing else.
 *
 * @param {readonly Page[]} pages @returns {string}
 */
export function searchIndex(pages) {
  /** @type {[string, string, string, string][]} */
  const sections = []
  /** @type {Map<string, Map<number, number>>} */
  const words = new Map()
  for (const page of pages) {
    for (const { id, depth, title, text } of page.sections) {
      const number = sections.length
      const first = depth === 1
      sections.push([first ? page.file : `${page.file}#${id}`, page.title, first ? '' : title, text.slice(0, EXCERPT)])
      /** @type {Map<string, number>} */
      const weights = new Map()
      for (const word of wordsOf(text)) weights.set(word, Math.min((weights.get(word) ?? 0) + 1, REPEATED))
      for (const word of new Set(wordsOf(title))) weights.set(word, (weights.get(word) ?? 0) + (first ? WEIGHT.page : WEIGHT.heading))
      for (const [word, weight] of weights) words.set(word, (words.get(word) ?? new Map()).set(number, weight))
    }
  }
  const index = Object.fromEntries([...words].map(([word, found]) => [word, [...found].flat()]))
  return `globalThis.searchIndex=${JSON.stringify({ sections, words: index })}\n`
}
