import { expect, test } from 'vitest'
import { UampError } from '../../protocol/errors.ts'
import { redactedLog } from '../../core/secrets/redaction.ts'
import { pinoLog } from './log.ts'

function lines(level?: 'debug') {
  const written: Record<string, unknown>[] = []
  const log = pinoLog({ to: { write: (line) => void written.push(JSON.parse(line)) }, ...(level && { level }) })
  return { log, written }
}

test('writes structured lines, and none below its level', () => {
  const { log, written } = lines()
  log('debug', 'not this')
  log('warn', 'careful', { port: 1 })
  log('info', 'bare')
  expect(written).toEqual([
    { level: 40, time: expect.any(Number), port: 1, msg: 'careful' },
    { level: 30, time: expect.any(Number), msg: 'bare' },
  ])
  const verbose = lines('debug')
  verbose.log('debug', 'this')
  expect(verbose.written).toHaveLength(1)
})

test('writes no secrets', () => {
  const { log, written } = lines()
  const headers = {
    authorization: 'Bearer hunter2',
    cookie: 'a=hunter2',
    'sec-websocket-protocol': 'uamp, uamp.token.hunter2',
    'x-payment': 'hunter2',
    'x-payment-token': 'hunter2',
    'payment-signature': 'hunter2',
    accept: 'kept',
  }
  log('error', 'refused', { headers, token: 'hunter2', request: { headers }, session: { token: 'hunter2', payment_token: 'hunter2' } })
  expect(JSON.stringify(written)).not.toContain('hunter2')
  expect(written).toMatchObject([{ headers: { accept: 'kept', authorization: '[redacted]' } }])
})

test('writes errors with their causes', () => {
  const { log, written } = lines()
  log('error', 'failed', { error: new UampError('internal', 'Internal error', { cause: new Error('disk full') }) })
  expect(written).toMatchObject([{ error: { code: 'internal', message: expect.stringContaining('disk full'), stack: expect.any(String) } }])
})

test('a timeout of a provider was logged with every constant of its class', () => {
  const { log, written } = lines()
  log('warn', 'late', { error: new DOMException('Nothing came in time', 'TimeoutError') })
  log('warn', 'late', { error: new DOMException('token=hunter2', 'TimeoutError'), token: 'hunter2' })
  for (const { error } of written) expect(Object.keys(error as object)).toEqual(['type', 'message', 'stack'])
  expect(written[0]).toMatchObject({ error: { type: 'TimeoutError', message: 'Nothing came in time' } })
})

test('an error whose secrets are hidden is logged in the same way', () => {
  const written: Record<string, unknown>[] = []
  const log = redactedLog(pinoLog({ to: { write: (line) => void written.push(JSON.parse(line)) } }), {
    text: (text) => text.replaceAll('hunter2', '…'),
  })
  log('warn', 'late', { error: new DOMException('no hunter2', 'TimeoutError') })
  expect(written).toMatchObject([{ error: { type: 'TimeoutError', message: 'no …' } }])
})
