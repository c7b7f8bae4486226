import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { verifies } from '../../test/support/verifies.ts'
import type { ServerEvent } from '../protocol/events.ts'
import { Renewal } from './renewal.ts'
import { Tokens, type TokenSource } from './tokens.ts'

beforeEach(() => void vi.useFakeTimers({ now: 1_000_000_000_000 }))
afterEach(() => void vi.useRealTimers())

let given = 0
/** A token that says when it ends, or, without a number, does not. */
function token(lives?: number): string {
  const claims = { jti: ++given, ...(lives !== undefined && { exp: Date.now() / 1000 + lives }) }
  return `e30.${btoa(JSON.stringify(claims))}.c2ln`
}

/** A connection that is open, with the seconds at which its function was called, and those at which it was shown a token. */
async function opened(source: TokenSource) {
  const start = Date.now()
  const seconds = (): number => (Date.now() - start) / 1000
  const asked: number[] = []
  const shown: number[] = []
  const function_ = (): string | Promise<string> => {
    asked.push(seconds())
    return typeof source === 'string' ? source : source()
  }
  const tokens = new Tokens(typeof source === 'string' ? source : function_, 30_000)
  const reconnect = { minMs: 1_000, maxMs: 8_000, random: () => 1 }
  const renewal = new Renewal({ tokens, reconnect, show: () => `show-${shown.push(seconds())}` })
  renewal.begin(await tokens.get())
  const hears = (event: object): boolean => renewal.hears(event as ServerEvent)
  return { tokens, renewal, asked, shown, hears }
}

verifies('identity:time:client', 'a token is replaced half a minute before it ends', async () => {
  const { asked, shown } = await opened(() => token(300))
  await vi.advanceTimersByTimeAsync(600_000)
  expect(asked).toEqual([0, 270, 540])
  expect(shown).toEqual([270, 540])
})

verifies('identity:time:client', 'a token that lives shorter is replaced in the last quarter of its life', async () => {
  const { shown } = await opened(() => token(40))
  await vi.advanceTimersByTimeAsync(90_000)
  expect(shown).toEqual([30, 60, 90])
})

test('tokens that live for less than a second are not asked for in a loop', async () => {
  const { asked } = await opened(() => token(0.01))
  await vi.advanceTimersByTimeAsync(5_000)
  expect(asked.length).toBeLessThanOrEqual(7)
})

test('a fixed token, and one that does not say when it ends, are left alone', async () => {
  const fixed = await opened(token(10))
  const silent = await opened(() => token())
  await vi.advanceTimersByTimeAsync(3_600_000)
  expect([fixed.shown, silent.shown]).toEqual([[], []])
})

verifies('identity:time:client-late', 'a token that the server calls expired is replaced at once', async () => {
  const { renewal, asked, shown } = await opened(() => token())
  await vi.advanceTimersByTimeAsync(60_000)
  const then = vi.fn<() => void>()
  renewal.expired(then)
  renewal.expired(then)
  await vi.advanceTimersByTimeAsync(0)
  expect([asked, shown]).toEqual([[0, 60], [60]])
  expect(then).toHaveBeenCalledTimes(2)
  // It is about the token before, as long as the server has not answered the newer one.
  renewal.expired(then)
  await vi.advanceTimersByTimeAsync(10_000)
  expect(shown).toEqual([60])
  expect(then).toHaveBeenCalledTimes(3)
})

verifies('identity:time:client-failing', 'a function that fails is called ever less often', async () => {
  let fails = false
  const { asked, shown } = await opened(() => (fails ? Promise.reject(new Error('no')) : token(300)))
  fails = true
  await vi.advanceTimersByTimeAsync(300_000)
  expect(asked.slice(0, 6)).toEqual([0, 270, 271, 273, 277, 285])
  fails = false
  await vi.advanceTimersByTimeAsync(8_000)
  expect(shown).toHaveLength(1)
})

verifies('identity:time:client-failing', 'so is one whose tokens the server refuses, and one that gives the same again', async () => {
  const { renewal, shown, hears } = await opened(() => token())
  await vi.advanceTimersByTimeAsync(60_000)
  renewal.expired(() => undefined)
  for (let second = 0; second < 30; second++) {
    await vi.advanceTimersByTimeAsync(1_000)
    hears({ type: 'session.error', error: { code: 'unauthorized', message: '', details: { event_id: `show-${shown.length}` } } })
  }
  expect(shown).toEqual([60, 62, 64, 68, 76, 84])
  const one = token(40)
  const same = await opened(() => one)
  await vi.advanceTimersByTimeAsync(40_000)
  expect(same.asked).toEqual([0, 30, 31, 33, 37])
  expect(same.shown).toEqual([])
})

test('a server that calls every token expired is given the next one ever later', async () => {
  const { renewal, shown, hears } = await opened(() => token())
  for (let second = 0; second < 30; second++) {
    renewal.expired(() => undefined)
    await vi.advanceTimersByTimeAsync(1_000)
    hears({ type: 'session.updated' })
  }
  expect(shown.length).toBeLessThan(10)
})

test('the answer to a change of somebody’s session is not taken for that to the token', async () => {
  const { renewal, asked, hears } = await opened(() => token())
  await vi.advanceTimersByTimeAsync(60_000)
  renewal.expired(() => undefined)
  await vi.advanceTimersByTimeAsync(0)
  expect(hears({ type: 'session.updated' })).toBe(false)
  expect(hears({ type: 'session.error', error: { code: 'unauthorized', message: '', details: { event_id: 'show-1' } } })).toBe(true)
  await vi.advanceTimersByTimeAsync(1_000)
  expect(asked).toHaveLength(3)
})

test('a connection that is gone asks for nothing', async () => {
  const { renewal, asked } = await opened(() => token(40))
  renewal.stop()
  await vi.advanceTimersByTimeAsync(120_000)
  expect(asked).toHaveLength(1)
})
