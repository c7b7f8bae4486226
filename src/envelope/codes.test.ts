import { expect, test } from 'vitest'
import { verifies } from '../../test/support/verifies.ts'
import { UampError, type ErrorCode } from '../protocol/errors.ts'
import { codeOf, CODES, envelopeError, type EnvelopeCode } from './codes.ts'

/** Every error that there is, with its code. A new one does not compile here until somebody thought of it. */
const ERRORS: Readonly<Record<ErrorCode, EnvelopeCode>> = {
  invalid_request: '4.00',
  unauthorized: '4.01',
  forbidden: '4.03',
  payment_required: '4.02',
  not_found: '4.04',
  agent_offline: '4.04',
  conflict: '4.09',
  response_in_progress: '5.04',
  version_mismatch: '4.00',
  too_large: '4.13',
  rate_limited: '4.29',
  timeout: '4.08',
  cancelled: '4.10',
  interrupted: '5.00',
  approval_unavailable: '4.05',
  tool_budget_exceeded: '5.00',
  not_supported: '4.05',
  provider_error: '5.00',
  overloaded: '5.04',
  internal: '5.00',
}

verifies('envelope:codes', 'every error has a code, and every code a status on each binding', () => {
  for (const [error, code] of Object.entries(ERRORS)) expect([error, codeOf(new UampError(error as ErrorCode, 'x'))]).toEqual([error, code])
  for (const [code, { title, http, grpc, error }] of Object.entries(CODES)) {
    expect([code, http]).toEqual([code, expect.toSatisfy((status: number) => status >= 400 && status <= 599)])
    // 4.xx blames the sender, 5.xx does not.
    expect(String(http)[0]).toBe(code[0])
    expect(grpc).toSatisfy((status: number) => Number.isInteger(status) && status >= 1 && status <= 16)
    expect(title).not.toBe('')
    // Nothing is lost on the way back: an error of this code is known by it.
    expect(codeOf(envelopeError(code as EnvelopeCode, 'x'))).toBe(code)
    expect(Object.keys(ERRORS)).toContain(error)
  }
  // The five of the specification (UAMP envelope §9).
  const five = (['4.01', '4.03', '4.09', '4.13', '5.04'] as const).map((code) => [
    code,
    CODES[code].http,
    CODES[code].grpc,
    CODES[code].retry,
  ])
  expect(five).toEqual([
    ['4.01', 401, 16, false],
    ['4.03', 403, 7, false],
    ['4.09', 409, 10, true],
    ['4.13', 413, 8, false],
    ['5.04', 503, 14, true],
  ])
  expect([CODES['4.01'].close, CODES['4.03'].close, CODES['4.13'].close, CODES['5.04'].close]).toEqual([1008, 1008, 1009, 1013])
})

test('an error names its own code, and nothing else passes for one', () => {
  for (const code of ['9.99', '__proto__', 'toString', '', 4, null, ['4.13']]) {
    expect(codeOf(new UampError('conflict', 'x', { details: { code } }))).toBe('4.09')
  }
  expect(codeOf(new UampError('conflict', 'x', { details: { code: '4.22' } }))).toBe('4.22')
  expect(envelopeError('4.01', 'x', 'skew').details).toEqual({ code: '4.01', reason: 'skew' })
  expect(envelopeError('4.01', 'x').details).toEqual({ code: '4.01' })
})
