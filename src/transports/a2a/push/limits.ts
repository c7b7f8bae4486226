/** Every number that bounds push notifications, and what happens beyond it. */
export const PUSH_LIMITS = {
  /** Configs of one task: `INVALID_PARAMS`. */
  configs: 20,
  /** Characters of a URL, a token and credentials each: `INVALID_PARAMS`. */
  textLength: 8_192,
  /** Events waiting for one webhook: they become one, the task as it is when its turn comes. */
  queuedEvents: 256,
  /** Characters waiting for one webhook: the same. */
  queuedLength: 1024 * 1024,
  /** Characters waiting for all webhooks: the same, for the one that goes beyond it. */
  totalLength: 64 * 1024 * 1024,
  /** Requests under way at a time, to all webhooks: the others wait for their turn. */
  requests: 256,
  /** Requests under way at a time, to the webhooks of one owner: the others wait for their turn. */
  requestsPerOwner: 16,
  /** Time for one request: it counts as failed. */
  timeoutMs: 10_000,
  /** How often one event is sent before it is dropped. The events that wait behind it then become one, the task. */
  attempts: 5,
  /** The first pause after a failure; each further one is twice as long. */
  firstPauseMs: 1_000,
  longestPauseMs: 60_000,
  /** The longest pause that a webhook may ask for by `Retry-After`; more is cut to this. */
  longestRetryAfterMs: 300_000,
  /** Tasks that are remembered to have configs or none; beyond it the store is asked again. */
  tasks: 10_000,
  /** How long a config is kept after it was set. */
  ttlMs: 30 * 24 * 3_600_000,
}

export type PushLimits = Readonly<typeof PUSH_LIMITS>
