import { afterAll, expect, test } from 'vitest'
import type { Requirement } from '../spec/requirement.ts'
import { requirements } from '../spec/requirements.ts'
import { citationsIn, testSources } from './support/citations.ts'

const all = [...requirements.values()]
const cited = testSources().map(citationsIn)
const isVerified = ({ id }: Requirement) => cited.some(({ verified }) => verified.has(id))
const isExpectedToFail = ({ id }: Requirement) => cited.some(({ expectedFailures }) => expectedFailures.has(id))
const inWords = ({ id, source, behaviour }: Requirement) => `${id} (${source}): ${behaviour}`

test('every requirement is verified by a test, or is a known gap that a test expects to fail', () => {
  const open = all.filter((requirement) => !isVerified(requirement) && !(requirement.gap !== undefined && isExpectedToFail(requirement)))
  expect(open.map(inWords)).toEqual([])
})

test('only known gaps are expected to fail', () => {
  expect(all.filter((requirement) => requirement.gap === undefined && isExpectedToFail(requirement)).map(inWords)).toEqual([])
})

// One that is built would go unnoticed beside another that is not.
test('an expected failure is that of one requirement', () => {
  expect(testSources().flatMap((source) => source.match(/\bexpectedFailure\(\s*\[[^\]]*\]/g) ?? [])).toEqual([])
})

test('no test cites a requirement that does not exist', () => {
  const ids = cited.flatMap(({ verified, expectedFailures }) => [...verified, ...expectedFailures])
  expect(ids.filter((id) => !requirements.has(id))).toEqual([])
})

test('citations are found in calls and in tables, not in comments', () => {
  // Spelled so that this very file does not cite them.
  const source = `
    VERIFIES('a', 'name', () => {})
    VERIFIES(
      ['b', 'c'],
      'name',
    )
    const rows = [{ VERIFIES: 'd' }, { VERIFIES: ['e'] }]
    EXPECTED('f', 'name', () => {})
    // VERIFIES('g', 'name')
  `
  const { verified, expectedFailures } = citationsIn(source.replaceAll('VERIFIES', 'verifies').replaceAll('EXPECTED', 'expectedFailure'))
  expect([...verified]).toEqual(['a', 'b', 'c', 'd', 'e'])
  expect([...expectedFailures]).toEqual(['f'])
})

afterAll(() => {
  const failures = all.filter((requirement) => !isVerified(requirement) && isExpectedToFail(requirement))
  const byArea = new Map<string, number>()
  for (const { area } of failures) byArea.set(area, (byArea.get(area) ?? 0) + 1)
  const areas = [...byArea].map(([area, count]) => `${area} ${count}`).join(', ')
  process.stdout.write(
    `${all.length} requirements: ${all.filter(isVerified).length} verified, ${failures.length} expected failures${areas && ` (${areas})`}\n`,
  )
})
