import { expect, test } from 'vitest'
import { done } from './done.ts'

const response = { id: '', status: 'completed', output: [] }

test('an end says no more than there is', () => {
  expect(done()).toStrictEqual({ type: 'response.done', response })
  expect(done({ stop: undefined, usage: undefined, signature: undefined })).toStrictEqual(done())
})

test('why it stopped stands beside what a protocol adds', () => {
  expect(done({ stop: 'length', usage: { output_tokens: 1 }, signature: 's', extensions: { a2a: { taskId: 't' } } })).toStrictEqual({
    type: 'response.done',
    response: { ...response, usage: { output_tokens: 1 }, extensions: { uamp: { stop_reason: 'length' }, a2a: { taskId: 't' } } },
    signature: 's',
  })
})
