import { expect, test } from 'vitest'
import { UampError } from '../protocol/errors.ts'
import { refusalResponse } from './refusal.ts'

test('status, body, and what a client does next', async () => {
  const limited = refusalResponse(new UampError('rate_limited', 'Later', { details: { retry_after: 1.2 } }), '{"error":"later"}')
  expect([limited.status, limited.headers.get('retry-after'), limited.headers.get('www-authenticate')]).toEqual([429, '2', null])
  expect(limited.headers.get('content-type')).toBe('application/json')
  expect(await limited.text()).toBe('{"error":"later"}')
  const stranger = refusalResponse(new UampError('unauthorized', 'Who is it?'), '{}')
  expect([stranger.status, stranger.headers.get('www-authenticate')]).toEqual([401, 'Bearer realm="uamp"'])
})

test('a finer status, and headers of a protocol', () => {
  const refused = refusalResponse(new UampError('invalid_request', 'No'), '{}', {
    status: 415,
    headers: { 'content-type': 'application/a' },
  })
  expect([refused.status, refused.headers.get('content-type')]).toEqual([415, 'application/a'])
})
