import { afterEach, beforeEach, expect, vi } from 'vitest'
import { verifies } from '../../../test/support/verifies.ts'
import type { ResponseSigner } from '../ports/signing.ts'
import type { TurnRecord } from '../durable/records.ts'
import type { End } from './run.ts'
import { signedEnd } from './signing.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const END: End = { kind: 'done', output: [{ type: 'text', text: 'Hello' }] }

/** The end of an answer that is to be signed so. */
function ending(sign: ResponseSigner['sign'], signal = new AbortController().signal) {
  const logged: unknown[] = []
  const signed = signedEnd(END, {
    host: { signer: { signs: () => true, sign }, log: (level, message, fields) => void logged.push([level, message, fields]) },
    turn: { responseId: 'resp_1', principal: { tenant: 't', id: 'alice', scopes: [] }, signal, trace: undefined, requestHash: undefined },
    record: { agent: 'a', input: [] } as unknown as TurnRecord,
    config: { modalities: ['text'] },
  })
  return { signed, logged }
}

verifies('uamp:signing:never-lost', 'a signer that fails costs the signature, and not the answer', async () => {
  const { signed, logged } = ending(() => Promise.reject(new Error('no key')))
  expect(await signed).toEqual(END)
  expect(logged).toMatchObject([['error', 'A response is not signed', { response: 'resp_1', error: { message: 'no key' } }]])
})

verifies('uamp:signing:never-lost', 'a signer that hangs is waited for, but not for ever', async () => {
  const { signed, logged } = ending(() => new Promise(() => undefined))
  let isOut = false
  void signed?.then(() => (isOut = true))
  await vi.advanceTimersByTimeAsync(19_999)
  expect(isOut).toBe(false)
  await vi.advanceTimersByTimeAsync(1)
  expect(await signed).toEqual(END)
  expect(logged).toHaveLength(1)
  expect(vi.getTimerCount()).toBe(0)
})

verifies('uamp:signing:never-lost', 'a turn that is stopped while it is signed waits no longer', async () => {
  const stop = new AbortController()
  const { signed } = ending(() => new Promise(() => undefined), stop.signal)
  stop.abort()
  expect(await signed).toEqual(END)
  expect(vi.getTimerCount()).toBe(0)
})
