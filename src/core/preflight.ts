import type { ServerEvent } from '../protocol/events.ts'
import type { Batch } from './ports/session.ts'

/** How long the headers of a streamed answer wait for its first word. */
export const PREFLIGHT_MS = 2_000

/** What an answer began with. */
export interface Begun {
  /** What was read so far, in order. */
  readonly batches: readonly Batch[]
  /** The next step, if the time was up before the answer said anything. */
  readonly next: Promise<IteratorResult<Batch, unknown>> | undefined
  /** The event that refuses the whole: nothing was said before it. */
  readonly refused: Extract<ServerEvent, { type: 'response.error' | 'payment.required' }> | undefined
}

/** Events that say nothing yet: after them an answer can still become an error. */
const IDLE: ReadonlySet<string> = new Set([
  'session.created',
  'session.updated',
  'capabilities',
  'response.created',
  'progress',
  'usage.delta',
  'rate_limit',
  'payment.accepted',
  'payment.balance',
])

/**
 * Reads until the answer says something, ends, or the time is up. A protocol over HTTP holds its headers back until then: what
 * is refused before the first word is a status, and not an error inside of a 200.
 */
export async function preflight(iterator: AsyncIterator<Batch, unknown>, ms = PREFLIGHT_MS): Promise<Begun> {
  const batches: Batch[] = []
  let timer: ReturnType<typeof setTimeout> | undefined
  let late: Promise<undefined> | undefined
  try {
    for (;;) {
      const next = iterator.next()
      late ??= new Promise((resolve) => (timer = setTimeout(resolve, ms, undefined)))
      const step = await Promise.race([next, late])
      if (step === undefined) return { batches, next, refused: undefined }
      if (step.done) return { batches, next: undefined, refused: undefined }
      batches.push(step.value)
      const { said, refused } = beginning(step.value)
      if (said || refused) return { batches, next: undefined, refused }
    }
  } finally {
    clearTimeout(timer)
  }
}

function beginning(batch: Batch): { said: boolean; refused: Begun['refused'] } {
  let said = false
  let refused: Begun['refused']
  batch.visit({
    text: () => {
      said ||= refused === undefined
    },
    event: (event) => {
      if (said || refused) return
      if (event.type === 'response.error' || event.type === 'payment.required') refused = event
      else if (!IDLE.has(event.type)) said = true
    },
  })
  return { said, refused }
}
