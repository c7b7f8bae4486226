export interface BackoffOptions {
  readonly minMs?: number
  readonly maxMs?: number
  readonly random?: () => number
}

/**
 * How long to wait after so many failures in a row: doubling from `minMs` to `maxMs`, half of it random, so that clients which lost
 * the same server do not all come back at the same moment.
 */
export function backoff({ minMs = 250, maxMs = 20_000, random = Math.random }: BackoffOptions = {}): (failures: number) => number {
  return (failures) => {
    const whole = Math.min(maxMs, minMs * 2 ** failures)
    return whole / 2 + (random() * whole) / 2
  }
}
