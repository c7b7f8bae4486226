import type { CardOptions } from './card/options.ts'
import type { PushLimits } from './push/limits.ts'

/** What whoever runs a server may set for A2A. */
export interface A2aOptions extends CardOptions {
  /** How long a task is kept after its last change. Default: as long as a session. */
  readonly taskTtlMs?: number
  /** What bounds push notifications. */
  readonly pushLimits?: Partial<PushLimits>
}
