/** Every number that bounds push notifications, and what happens beyond it. */
export interface PushLimits {
  /** Configs of one task: `INVALID_PARAMS`. */
  readonly configs: number
  /** Characters of a URL, a token and credentials each: `INVALID_PARAMS`. */
  readonly textLength: number
  /** Events waiting for one webhook: they become one, the task as it is when its turn comes. */
  readonly queuedEvents: number
  /** Characters waiting for one webhook: the same. */
  readonly queuedLength: number
  /** Characters waiting for all webhooks: the same, for the one that goes beyond it. */
  readonly totalLength: number
  /** Requests under way at a time, to all webhooks: the others wait for their turn. */
  readonly requests: number
  /** Requests under way at a time to the webhooks of one owner: the others wait. */
  readonly requestsPerOwner: number
  /** Time for one request: it counts as failed. */
  readonly timeoutMs: number
  /** How often one event is sent before it is dropped. What waits behind it then becomes one event, the task. */
  readonly attempts: number
  /** The first pause after a failure; each further one is twice as long. */
  readonly firstPauseMs: number
  readonly longestPauseMs: number
  /** The longest pause that a webhook may ask for by `Retry-After`; more is cut to this. */
  readonly longestRetryAfterMs: number
  /** Tasks that are remembered to have configs or none; beyond it the store is asked again. */
  readonly tasks: number
  /** How long a config is kept after it was set. */
  readonly ttlMs: number
}

export const PUSH_LIMITS: PushLimits = {
  configs: 20,
  textLength: 8_192,
  queuedEvents: 256,
  queuedLength: 1024 * 1024,
  totalLength: 64 * 1024 * 1024,
  requests: 256,
  requestsPerOwner: 16,
  timeoutMs: 10_000,
  attempts: 5,
  firstPauseMs: 1_000,
  longestPauseMs: 60_000,
  longestRetryAfterMs: 300_000,
  tasks: 10_000,
  ttlMs: 30 * 24 * 3_600_000,
}
