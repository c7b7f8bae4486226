// @ts-check

/** @typedef {import('./pages.js').Page} Page */

const EXCERPT = 150
/** How much a word counts for each place where it stands. */
const WEIGHT = { page: 20, heading: 8, text: 1 }

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
      /** @param {string} part @param {number} weight */
      const count = (part, weight) => {
        for (const word of wordsOf(part)) {
          const found = words.get(word) ?? new Map()
          // A word that is repeated often says little more.
          found.set(number, Math.min((found.get(number) ?? 0) + weight, weight + 40))
          words.set(word, found)
        }
      }
      count(title, first ? WEIGHT.page : WEIGHT.heading)
      count(text, WEIGHT.text)
    }
  }
  const index = Object.fromEntries([...words].map(([word, found]) => [word, [...found].flat()]))
  return `globalThis.searchIndex=${JSON.stringify({ sections, words: index })}\n`
}
