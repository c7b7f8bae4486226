import { describe, expect, test } from 'vitest'
import { UampClientError } from './errors.ts'
import { keepConnected, sleep, type Attempt } from './reconnect.ts'

const lost = new UampClientError({ code: 'unreachable', message: 'lost' })
const refused = new UampClientError({ code: 'unauthorized', message: 'no' })

/** One entry per attempt: what it does, and what the last one ended with. */
async function play(steps: readonly ((attempt: Attempt) => boolean)[], attempts?: number) {
  const log: string[] = []
  let at = 0
  const ended = await keepConnected({
    attempt: async (attempt) => {
      log.push(`${attempt.failures}${attempt.known ? ' known' : ''}`)
      const step = steps[at++]
      if (!step) throw new Error('one attempt too many')
      return step(attempt)
    },
    reconnect: { minMs: 1, maxMs: 1, ...(attempts !== undefined && { attempts }) },
    signal: new AbortController().signal,
    onRetry: ({ code }) => log.push(code),
  }).then(
    () => 'over',
    (error: UampClientError) => error.code,
  )
  return { log, ended }
}

const works = ({ proved }: Attempt): boolean => (proved(), true)
const stops = (): boolean => false
const fails = (): boolean => {
  throw lost
}
const isRefused = (): boolean => {
  throw refused
}

describe('keepConnected', () => {
  test('connects again whenever the connection is lost', async () => {
    expect(await play([works, works, stops])).toEqual({ log: ['0', 'unreachable', '1 known', 'unreachable', '1 known'], ended: 'over' })
  })

  test('a first connection that fails is reported at once', async () => {
    expect(await play([fails])).toEqual({ log: ['0'], ended: 'unreachable' })
  })

  test('failures are counted until it works again', async () => {
    const { log } = await play([works, fails, fails, works, stops])
    expect(log.filter((entry) => entry !== 'unreachable')).toEqual(['0', '1 known', '2 known', '3 known', '1 known'])
  })

  test('gives up after so many failures', async () => {
    expect((await play([works, fails, fails], 2)).ended).toBe('unreachable')
    expect((await play([works], 0)).ended).toBe('unreachable')
  })

  test('what will not change is not tried again', async () => {
    expect(await play([works, isRefused])).toEqual({ log: ['0', 'unreachable', '1 known'], ended: 'unauthorized' })
  })

  test('a closed signal ends it, also while it waits', async () => {
    const stop = new AbortController()
    let attempts = 0
    await keepConnected({
      attempt: async ({ proved }) => {
        attempts++
        proved()
        return true
      },
      reconnect: { minMs: 60_000 },
      signal: stop.signal,
      onRetry: () => void Promise.resolve().then(() => stop.abort()),
    })
    expect(attempts).toBe(1)
  })
})

test('sleep ends at once when the signal was aborted before', async () => {
  await expect(sleep(60_000, AbortSignal.abort())).resolves.toBeUndefined()
})
