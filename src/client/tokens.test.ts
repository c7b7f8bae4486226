import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { verifies } from '../../test/support/verifies.ts'
import { Tokens } from './tokens.ts'

const PATIENCE = 30_000

beforeEach(() => void vi.useFakeTimers({ now: 1_000_000_000_000 }))
afterEach(() => void vi.useRealTimers())

function token(name: string, lives: number): string {
  return `e30.${btoa(JSON.stringify({ jti: name, exp: Date.now() / 1000 + lives }))}.c2ln`
}

test('many who ask at the same time share one call', async () => {
  const source = vi.fn<() => Promise<string>>().mockResolvedValue('opaque')
  const tokens = new Tokens(source, PATIENCE)
  expect(await Promise.all([tokens.get(), tokens.get(), tokens.renew(undefined)])).toEqual(['opaque', 'opaque', 'opaque'])
  expect(source).toHaveBeenCalledTimes(1)
})

verifies('identity:time:client-failing', 'while the function fails, a token that is still good is used', async () => {
  const first = token('first', 100)
  let fails = false
  const tokens = new Tokens(() => (fails ? Promise.reject(new Error('no')) : first), PATIENCE)
  await tokens.get()
  fails = true
  await vi.advanceTimersByTimeAsync(99_000)
  expect(tokens.dueMs(first)).toBeLessThan(0)
  expect(await tokens.get()).toBe(first)
  await expect(tokens.renew(first)).rejects.toMatchObject({ code: 'unreachable', cause: { message: 'no' } })
  await vi.advanceTimersByTimeAsync(1_000)
  await expect(tokens.get()).rejects.toMatchObject({ code: 'unreachable', message: 'There is no token' })
})

verifies('identity:time:client-failing', 'a function that takes too long has failed, but its token counts if it comes', async () => {
  const answers: ((token: string) => void)[] = []
  const tokens = new Tokens(() => new Promise((resolve) => answers.push(resolve)), PATIENCE)
  const late = expect(tokens.get()).rejects.toMatchObject({ code: 'unreachable', cause: { message: expect.stringContaining('30000 ms') } })
  await vi.advanceTimersByTimeAsync(PATIENCE)
  await late
  const second = tokens.get()
  expect(answers).toHaveLength(2)
  answers[0]?.('first')
  await vi.advanceTimersByTimeAsync(0)
  answers[1]?.('second')
  expect(await second).toBe('second')
  expect(await tokens.get()).toBe('second')
  const third = expect(tokens.renew('second')).rejects.toMatchObject({ code: 'unreachable' })
  await vi.advanceTimersByTimeAsync(PATIENCE)
  await third
  answers[2]?.('third')
  await vi.advanceTimersByTimeAsync(0)
  expect(await tokens.renew('second')).toBe('third')
  expect(answers).toHaveLength(3)
})

test('an earlier call that answers later does not replace a newer token', async () => {
  const answers: ((token: string) => void)[] = []
  const tokens = new Tokens(() => new Promise((resolve) => answers.push(resolve)), PATIENCE)
  const first = tokens.get().catch(() => undefined)
  await vi.advanceTimersByTimeAsync(PATIENCE)
  await first
  const second = tokens.get()
  answers[1]?.('second')
  expect(await second).toBe('second')
  answers[0]?.('first')
  await vi.advanceTimersByTimeAsync(0)
  expect(await tokens.get()).toBe('second')
})

test('a client that is closed waits for no token, and leaves no timer', async () => {
  const tokens = new Tokens(() => new Promise(() => undefined), PATIENCE)
  const waiting = expect(tokens.get()).rejects.toMatchObject({ code: 'unreachable' })
  tokens.close()
  await waiting
  expect(vi.getTimerCount()).toBe(0)
})

test('a token that has ended by this clock is used until the server says so', async () => {
  const tokens = new Tokens(() => token('late', -100), PATIENCE)
  const given = await tokens.get()
  expect(tokens.dueMs(given)).toBeUndefined()
  expect(await tokens.get()).toBe(given)
})

test('a function that throws at once has failed like any other', async () => {
  const tokens = new Tokens(() => {
    throw new Error('no')
  }, PATIENCE)
  await expect(tokens.get()).rejects.toMatchObject({ code: 'unreachable', cause: { message: 'no' } })
})
