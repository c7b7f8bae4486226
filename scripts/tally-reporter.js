// @ts-check
import { writeFileSync } from 'node:fs'
import { relative } from 'node:path'

/** @typedef {{ passed: number, failed: number, skipped: { name: string, reason: string }[] }} Tally */

/** A vitest reporter that leaves the counts, and why tests were skipped, in the file that `UAMP_TALLY` names. */
export default class TallyReporter {
  /** @param {readonly import('vitest/node').TestModule[]} modules @param {readonly unknown[]} unhandled */
  onTestRunEnd(modules, unhandled) {
    /** @type {Tally} */
    const tally = { passed: 0, failed: unhandled.length, skipped: [] }
    for (const module of modules) {
      // A file that does not load has errors and no tests.
      tally.failed += module.errors().length
      for (const suite of module.children.allSuites()) tally.failed += suite.errors().length
      for (const test of module.children.allTests()) {
        const result = test.result()
        if (result.state === 'passed') tally.passed++
        else if (result.state === 'failed') tally.failed++
        else {
          const reason = ('note' in result && result.note) || 'no reason given'
          tally.skipped.push({ name: `${relative('.', module.moduleId)}: ${test.fullName}`, reason })
        }
      }
    }
    writeFileSync(/** @type {string} */ (process.env['UAMP_TALLY']), JSON.stringify(tally))
  }
}
