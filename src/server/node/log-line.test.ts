import { expect, test } from 'vitest'
import { terminalLine } from './log-line.ts'

const at = new Date(2026, 0, 2, 3, 4, 5)

test('a request is one line, and what others wrote cannot steer the terminal', () => {
  const fields = { method: 'GET', path: '/\x1b[2J', status: 404, ms: 1.5, request_id: 'req_1', principal: 'a b' }
  expect(terminalLine({ severity: 'info', message: 'Request', fields, at }, false)).toBe(
    '03:04:05 info  GET /\\x1b[2J 404 1.5ms  request_id=req_1 principal="a b"\n',
  )
})

test('colours stand only where they are wanted', () => {
  const line = { severity: 'warn', message: 'careful', fields: undefined, at } as const
  expect(terminalLine(line, false)).toBe('03:04:05 warn  careful\n')
  expect(terminalLine(line, true)).toBe('\x1b[2m03:04:05\x1b[0m \x1b[33mwarn \x1b[0m careful\n')
})

test('the stack of an error follows its line', () => {
  const text = terminalLine({ severity: 'error', message: 'failed', fields: { error: new Error('no\x07') }, at }, false)
  expect(text).toMatch(/^03:04:05 error failed\n {4}Error: no\\x07\n {4} {4}at /)
})
