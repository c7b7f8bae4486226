// @ts-check

/** What must hold, and did not. */
export class Violation extends Error {
  /** @param {string} rule which of them, in a few words that are the same each time @param {string} what */
  constructor(rule, what) {
    super(`${rule}: ${what}`)
    this.name = 'Violation'
    this.rule = rule
    /** Who found it, and what went on before: filled in by whoever knows. @type {string | undefined} */
    this.talker = undefined
    this.transcript = ''
  }
}

/** The connection went away with the server. Not a fault. */
export class Gone extends Error {}

/** @param {unknown} holds @param {string} rule @param {string | (() => string)} what @returns {asserts holds} */
export function must(holds, rule, what) {
  if (!holds) throw new Violation(rule, typeof what === 'string' ? what : what())
}
