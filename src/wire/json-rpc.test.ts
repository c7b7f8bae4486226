import { expect, test } from 'vitest'
import { Asking, readMessage, RpcError } from './json-rpc.ts'

test.each([
  ['{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1}}', { kind: 'request', id: 1, method: 'm', params: { a: 1 } }],
  ['{"jsonrpc":"2.0","id":null,"method":"m"}', { kind: 'request', id: null, method: 'm' }],
  ['{"jsonrpc":"2.0","method":"m"}', { kind: 'notification', method: 'm' }],
  ['{"jsonrpc":"2.0","id":"a","result":null}', { kind: 'response', id: 'a', result: null }],
  ['{"jsonrpc":"2.0","id":2,"error":{"code":5,"message":"no","data":7}}', { kind: 'response', error: { code: 5, message: 'no', data: 7 } }],
  ['{"jsonrpc":"2.0","id":2,"error":"odd"}', { kind: 'response', error: { code: -32603 } }],
  ['{"jsonrpc":"2.0","id":2}', { kind: 'nothing' }],
  ['{"jsonrpc":"2.0","id":null,"result":1}', { kind: 'nothing' }],
  ['{', { kind: 'invalid', id: null, error: { code: -32700 } }],
  ['{}', { kind: 'invalid', id: null, error: { code: -32600 } }],
  ['[{}]', { kind: 'invalid', id: null, error: { code: -32600 } }],
])('%s', (text, message) => {
  expect(readMessage(text)).toMatchObject(message)
})

test('our own questions and their answers', async () => {
  const asking = new Asking()
  const first = asking.ask('m', { a: 1 })
  const second = asking.ask('m', {})
  expect(JSON.parse(first.text)).toEqual({ jsonrpc: '2.0', id: 1, method: 'm', params: { a: 1 } })
  expect(asking.settle({ kind: 'response', id: 2, result: undefined, error: new RpcError(5, 'no') })).toBe(true)
  expect(asking.settle({ kind: 'response', id: 1, result: 'yes', error: undefined })).toBe(true)
  expect(asking.settle({ kind: 'response', id: 1, result: 'again', error: undefined })).toBe(false)
  expect(await first.answer).toBe('yes')
  await expect(second.answer).rejects.toMatchObject({ code: 5 })
})

test('an abort, the end, and too many', async () => {
  const asking = new Asking()
  const leave = new AbortController()
  const left = asking.ask('m', {}, { signal: leave.signal })
  leave.abort(new Error('enough'))
  await expect(left.answer).rejects.toThrow('enough')
  expect(asking.settle({ kind: 'response', id: 1, result: 1, error: undefined })).toBe(false)
  const open = Array.from({ length: 257 }, () => asking.ask('m', {}).answer)
  await expect(open[256]).rejects.toThrow('wait for an answer')
  asking.close(new Error('gone'))
  await expect(open[0]).rejects.toThrow('gone')
  await expect(asking.ask('m', {}).answer).rejects.toThrow('gone')
})
