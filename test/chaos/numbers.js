// @ts-check
import { must } from '../support/violation.js'

/** What had which number, over all lives of the server: no number may stand for two events. */
export class Numbers {
  /** @type {Map<string, string>} */
  #seen = new Map()

  /** @param {string | number} number @param {object} event */
  see(number, event) {
    const text = brief(event)
    const before = this.#seen.get(String(number))
    must(before === undefined || before === text, 'a number is used twice', () => `${number} was ${before}, and is ${text}`)
    this.#seen.set(String(number), text)
  }
}

/** The same for the same event, however its fields are ordered; short enough to be kept. @param {unknown} value */
function brief(value) {
  const text = JSON.stringify(value, (_, field) =>
    field !== null && typeof field === 'object' && !Array.isArray(field)
      ? Object.fromEntries(Object.entries(field).sort(([a], [b]) => (a < b ? -1 : 1)))
      : field,
  )
  return text.length > 600 ? `${text.slice(0, 300)}…${text.slice(-200)} (${text.length})` : text
}

/** Numbers of one reading, which only rise. @param {string} who @returns {(number: number) => void} */
export function rising(who, after = 0) {
  let last = after
  return (number) => {
    must(number > last, 'numbers only rise', () => `${number} came after ${last} in ${who}`)
    last = number
  }
}
