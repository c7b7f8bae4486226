import { expect, test } from 'vitest'
import { UampError } from '../../protocol/errors.ts'
import { Secrets } from '../secrets/secrets.ts'
import { reportError } from './report-error.ts'

function host() {
  const counted: string[] = []
  const logged: unknown[] = []
  const meter = { countEvents() {}, countError: (...error: string[]) => void counted.push(error.join(' ')), observeFirstDelta() {} }
  return { counted, logged, meter, secrets: new Secrets(), log: (...line: unknown[]) => void logged.push(line) }
}

test('a mistake of the client is counted', () => {
  const { counted, logged, ...rest } = host()
  const thrown = new UampError('not_found', 'There is no such thing')
  expect(reportError(rest, thrown, { transport: 'omnia', message: 'It failed' })).toBe(thrown)
  expect([counted, logged]).toEqual([['omnia not_found'], []])
})

test('one of our own is logged with its cause, which the client is not told', () => {
  const { counted, logged, ...rest } = host()
  const cause = new TypeError('secret')
  const told = reportError(rest, cause, { transport: 'omnia', message: 'It failed', session: 's' })
  expect([told.code, told.message]).toEqual(['internal', 'Internal error'])
  expect([counted, logged]).toEqual([['omnia internal'], [['error', 'It failed', { session: 's', error: cause }]]])
})
