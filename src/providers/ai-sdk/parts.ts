import { UampError } from '../../protocol/errors.ts'
import type { EventBatch } from '../../upstream/answer-drafts.ts'
import type { Timeouts } from '../../upstream/upstream.ts'
import { failedAnswer } from './failures.ts'
import type { StreamPart } from './model.ts'

interface Reading {
  readonly name: string
  readonly signal: AbortSignal
  /** Aborted at the end, which closes the connection. */
  readonly leaving: AbortController
  readonly times: Timeouts
}

/** The parts of an answer as they come, within the bounds of time. */
export async function* readParts(
  stream: ReadableStream<StreamPart>,
  { name, signal, leaving, times }: Reading,
): AsyncGenerator<EventBatch<StreamPart>, void> {
  const reader = stream.getReader()
  const until = performance.now() + times.totalMs
  try {
    for (;;) {
      const left = until - performance.now()
      const step = await within(Math.min(times.idleMs, left), reader.read())
      if (!step) throw new UampError('timeout', lateness(name, left, times))
      if (step.done) return
      yield [{ data: step.value }]
    }
  } catch (thrown) {
    signal.throwIfAborted()
    throw failedAnswer(name, thrown)
  } finally {
    leaving.abort()
    void reader.cancel().catch(() => undefined)
  }
}

function lateness(name: string, left: number, { idleMs, totalMs }: Timeouts): string {
  return left < idleMs ? `${name} did not come to an end within ${totalMs} ms` : `${name} fell silent for ${idleMs} ms`
}

/** Resolves with undefined if it takes longer. */
export async function within<T>(ms: number, work: Promise<T>): Promise<T | undefined> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<undefined>((resolve) => (timer = setTimeout(resolve, Math.max(0, ms), undefined)))
  work.catch(() => undefined)
  return Promise.race([work, late]).finally(() => clearTimeout(timer))
}
