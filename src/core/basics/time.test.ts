import { expect, test } from 'vitest'
import { clocksOf, expiryClock, nextTurn, pause, timeOrderedIds, Turnstile, unlessAborted } from './time.ts'

test('a pause ends with its time, or with the reason of the abort', async () => {
  await pause(1, new AbortController().signal)
  const controller = new AbortController()
  const pausing = pause(60_000, controller.signal)
  controller.abort(new Error('enough'))
  await expect(pausing).rejects.toThrow('enough')
  await expect(pause(60_000, controller.signal)).rejects.toThrow('enough')
})

test('a promise, unless it is aborted before', async () => {
  const controller = new AbortController()
  expect(await unlessAborted(Promise.resolve(1), controller.signal)).toBe(1)
  const never = unlessAborted(new Promise(() => undefined), controller.signal)
  controller.abort(new Error('enough'))
  await expect(never).rejects.toThrow('enough')
})

const HOUR = 3_600_000
const MONTH = 30 * 24 * HOUR

function clocks() {
  const time = { wall: 1_000 * HOUR, ticks: 0 }
  const pass = (ms: number): void => {
    time.wall += ms
    time.ticks += ms
  }
  return { time, pass, expired: expiryClock({ now: () => time.wall, monotonic: () => time.ticks }) }
}

test('the expiry clock is the wall clock while that does not leap', () => {
  const { time, pass, expired } = clocks()
  for (const ms of [0, 1, 50_000, HOUR, MONTH]) {
    pass(ms)
    expect(expired()).toBe(time.wall)
  }
})

test.each([HOUR, MONTH])('a leap ahead by %d ms is believed after a day', (leap) => {
  const { time, pass, expired } = clocks()
  const before = time.wall
  time.wall += leap
  expect(expired()).toBe(before)
  pass(23 * HOUR)
  expect(expired()).toBe(before + 23 * HOUR)
  pass(HOUR)
  expect(expired()).toBe(time.wall)
})

test('a leap ahead that is taken back has done nothing', () => {
  const { time, pass, expired } = clocks()
  time.wall += MONTH
  expired()
  pass(HOUR)
  time.wall -= MONTH
  expect(expired()).toBe(time.wall)
  time.wall += MONTH
  expired()
  pass(23.5 * HOUR)
  expect(expired()).toBe(time.wall - MONTH)
})

test.each([HOUR, MONTH])('a step back by %d ms counts at once, and its correction is doubted', (ms) => {
  const { time, expired } = clocks()
  time.wall -= ms
  expect(expired()).toBe(time.wall)
  const low = time.wall
  time.wall += ms
  expect(expired()).toBe(low)
})

test('whoever gives one clock moves both', () => {
  let time = 5
  const { now, monotonic } = clocksOf({ now: () => time })
  time = 7
  expect([now(), monotonic()]).toEqual([7, 7])
})

const UUID_7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

test('ids sort in the order they were made, within a millisecond and when the clock is set back', () => {
  let now = 1_800_000_000_000
  const newId = timeOrderedIds(() => now)
  const ids = Array.from({ length: 20_000 }, (_, index) => {
    if (index === 10_000) now -= 3_600_000
    return newId()
  })
  now += 7_200_000
  ids.push(newId())
  expect(ids.toSorted()).toEqual(ids)
  expect(new Set(ids).size).toBe(ids.length)
  for (const id of ids) expect(id).toMatch(UUID_7)
})

test('many agents begin in one turn of the event loop, and the rest in the next', async () => {
  const turnstile = new Turnstile()
  const entries = Array.from({ length: 300 }, () => turnstile.enter(false))
  expect(entries.filter((entry) => entry === undefined)).toHaveLength(256)
  await nextTurn()
  await Promise.all(entries)
})

test('agents that nobody hears before their end begin a few at a time', async () => {
  const turnstile = new Turnstile()
  const entries = Array.from({ length: 10 }, () => turnstile.enter(true))
  expect(entries.filter((entry) => entry === undefined)).toHaveLength(4)
  const begun: number[] = []
  for (const [index, entry] of entries.entries()) void entry?.then(() => begun.push(index))
  await nextTurn()
  expect(begun).toEqual([4, 5, 6, 7])
  await nextTurn()
  expect(begun).toHaveLength(6)
  // Who begins in a turn that has room for no more of them waits, and others need not.
  expect(turnstile.enter(false)).toBeUndefined()
})

test('a few agents that never wait continue in each turn of the event loop, those that have begun before others', async () => {
  const turnstile = new Turnstile()
  const passed: string[] = []
  const pass = (name: string, first: boolean): void => void turnstile.pass(first).then(() => passed.push(name))
  for (let n = 1; n <= 6; n++) pass(`new ${n}`, false)
  pass('going', true)
  await nextTurn()
  expect(passed).toEqual(['going', 'new 1', 'new 2', 'new 3'])
  await nextTurn()
  expect(passed.slice(4)).toEqual(['new 4', 'new 5', 'new 6'])
})
