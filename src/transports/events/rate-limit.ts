import type { Quota } from '../../core/ports/transport.ts'
import type { UampError } from '../../protocol/errors.ts'
import type { Draft, EventOf } from '../../protocol/events.ts'

type RateLimit = Draft<EventOf<'rate_limit'>>

/** UAMP events §6.17: what is left, before anything is refused. `reset_at` is when all of it is there again. */
export function whatIsLeft({ limit, remaining, resetMs }: Quota, now: number): RateLimit {
  return { type: 'rate_limit', limit, remaining, reset_at: Math.ceil((now + resetMs) / 1000) }
}

/** The same of a limit that was reached, as far as the refusal tells. */
export function nothingLeft({ details }: UampError, now: number): RateLimit {
  const { limit, retry_after: retryAfter } = details ?? {}
  return {
    type: 'rate_limit',
    limit: typeof limit === 'number' ? limit : 0,
    remaining: 0,
    ...(typeof retryAfter === 'number' && { reset_at: Math.ceil(now / 1000) + retryAfter }),
  }
}

/** What is left, in every HTTP answer. The reset is in seconds from now, as clocks differ. */
export function rateHeaders({ limit, remaining, resetMs }: Quota): Record<string, string> {
  return {
    'ratelimit-limit': String(limit),
    'ratelimit-remaining': String(remaining),
    'ratelimit-reset': String(Math.ceil(resetMs / 1000)),
  }
}
