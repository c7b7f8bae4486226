import { expect, test } from 'vitest'
import * as z from 'zod/mini'
import { Asking, parseParams, readMessage, RpcError } from './json-rpc.ts'

const DEEP = '['.repeat(100_000) + ']'.repeat(100_000)

test.each([
  ['{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1}}', { kind: 'request', id: 1, method: 'm', params: { a: 1 } }],
  ['{"jsonrpc":"2.0","id":null,"method":"m"}', { kind: 'request', id: null, method: 'm' }],
  ['{"jsonrpc":"2.0","method":"m"}', { kind: 'notification', method: 'm' }],
  ['{"jsonrpc":"2.0","id":"a","result":null}', { kind: 'response', id: 'a', result: null }],
  ['{"jsonrpc":"2.0","id":2,"error":{"code":5,"message":"no","data":7}}', { kind: 'response', error: { code: 5, message: 'no', data: 7 } }],
  ['{"jsonrpc":"2.0","id":2,"error":"odd"}', { kind: 'response', error: { code: -32603 } }],
  ['{"jsonrpc":"2.0","id":2,"result":{},"error":null}', { kind: 'response', id: 2, result: {}, error: undefined }],
  ['{"jsonrpc":"2.0","id":2,"result":null,"error":null}', { kind: 'response', id: 2, result: null, error: undefined }],
  ['{"jsonrpc":"2.0","id":2,"result":1,"error":{"code":5,"message":"no"}}', { kind: 'response', id: 2, error: { code: 5 } }],
  [`{"jsonrpc":"2.0","id":2,"result":${DEEP}}`, { kind: 'response', id: 2, result: undefined, error: { code: -32600 } }],
  [`{"jsonrpc":"2.0","id":"a","method":"m","params":${DEEP}}`, { kind: 'invalid', id: 'a', error: { code: -32600 } }],
  [`{"jsonrpc":"2.0","method":"m","params":${DEEP}}`, { kind: 'invalid', id: null, error: { code: -32600 } }],
  ['{"jsonrpc":"2.0","id":2}', { kind: 'nothing' }],
  ['{"jsonrpc":"2.0","id":null,"result":1}', { kind: 'nothing' }],
  ['{', { kind: 'invalid', id: null, error: { code: -32700 } }],
  ['{}', { kind: 'invalid', id: null, error: { code: -32600 } }],
  ['[{}]', { kind: 'invalid', id: null, error: { code: -32600 } }],
])('%.100s', (text, message) => {
  expect(readMessage(text)).toMatchObject(message)
})

test('our own questions and their answers', async () => {
  const asking = new Asking()
  const sent: string[] = []
  const send = (text: string): void => void sent.push(text)
  const first = asking.request('m', { a: 1 }, { send })
  const second = asking.request('m', {}, { send })
  expect(JSON.parse(sent[0] ?? '')).toEqual({ jsonrpc: '2.0', id: 1, method: 'm', params: { a: 1 } })
  expect(asking.settle({ kind: 'response', id: 2, result: undefined, error: new RpcError(5, 'no') })).toBe(true)
  expect(asking.settle({ kind: 'response', id: 1, result: 'yes', error: undefined })).toBe(true)
  expect(asking.settle({ kind: 'response', id: 1, result: 'again', error: undefined })).toBe(false)
  expect(await first).toBe('yes')
  await expect(second).rejects.toMatchObject({ code: 5 })
})

test('an abort, the end, and too many: what is refused is not sent', async () => {
  const asking = new Asking()
  const sent: string[] = []
  const send = (text: string): void => void sent.push(text)
  const leave = new AbortController()
  const left = asking.request('m', {}, { send, signal: leave.signal })
  leave.abort(new Error('enough'))
  await expect(left).rejects.toThrow('enough')
  await expect(asking.request('m', {}, { send, signal: leave.signal })).rejects.toThrow('enough')
  expect(asking.settle({ kind: 'response', id: 1, result: 1, error: undefined })).toBe(false)
  const open = Array.from({ length: 257 }, () => asking.request('m', {}, { send }))
  await expect(open[256]).rejects.toThrow('wait for an answer')
  asking.close(new Error('gone'))
  await expect(open[0]).rejects.toThrow('gone')
  await expect(asking.request('m', {}, { send })).rejects.toThrow('gone')
  expect(sent).toHaveLength(257)
})

const Params = z.object({ path: z.string(), line: z.nullish(z.number()) })

test('parameters, or which of them is wrong', () => {
  expect(parseParams(Params, { path: '/a', more: 1 })).toEqual({ path: '/a' })
  expect(() => parseParams(Params, { path: 1 })).toThrow('"path" must be a string, not a number')
  expect(() => parseParams(Params, undefined)).toThrow('"path" must be a string, but is missing')
})
