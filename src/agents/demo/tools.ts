import type { Tool } from '../../core/ports/skill.ts'
import { UampError } from '../../protocol/errors.ts'

/** The longest time that `slow` takes. */
const SLOW_MS = 30_000

const object = (properties: Record<string, unknown>, required: readonly string[] = []) => ({ type: 'object', properties, required })

/** The demo's own tools, for clients that bring none. */
export const tools: readonly Tool[] = [
  {
    name: 'clock',
    description: 'The time now, in ISO 8601',
    direct: true,
    parameters: object({}),
    run: () => ({ time: new Date().toISOString() }),
  },
  {
    name: 'add',
    description: 'The sum of two numbers',
    direct: true,
    parameters: object({ a: { type: 'number' }, b: { type: 'number' } }, ['a', 'b']),
    run: ({ a, b }) => {
      if (typeof a !== 'number' || typeof b !== 'number') throw new UampError('invalid_request', '"a" and "b" must be numbers')
      return { sum: a + b }
    },
  },
  {
    name: 'slow',
    description: 'Takes its time and says so',
    parameters: object({ ms: { type: 'number' } }),
    run: async ({ ms = 1000 }, { signal, progress }) => {
      const total = Math.min(Number(ms) || 0, SLOW_MS)
      const wait = pacer(total / 4, signal)
      for (let step = 1; step <= 4 && !signal.aborted; step++) {
        await wait()
        progress(`${step * 25} %`)
      }
      return { waited_ms: total }
    },
  },
]

/** Waits `ms` between steps until the signal aborts. All steps share one listener, because there is one for every delta. */
export function pacer(ms: number, signal: AbortSignal): () => Promise<void> {
  let wake: (() => void) | undefined
  signal.addEventListener('abort', () => wake?.(), { once: true })
  return () =>
    new Promise<void>((resolve) => {
      wake = resolve
      setTimeout(resolve, ms)
    })
}
