import type { Principal } from './ports/access.ts'
import type { TurnRecord } from './records.ts'
import type { ActiveTurn } from './turn.ts'

/** A turn whose questions the next request answers: with its generator, if that is still there. */
export interface Parked {
  readonly record: TurnRecord
  readonly turn?: ActiveTurn
  readonly timer?: ReturnType<typeof setTimeout>
  readonly leave?: () => void
}

/** Turns that wait for the next request, by principal: beyond the bound the oldest is given up. */
export class Parking {
  readonly #bound: number
  readonly #waiting = new Map<string, Set<() => void>>()

  constructor(bound: number) {
    this.#bound = bound
  }

  /** Returns what is called when it waits no longer. */
  enter({ tenant, id }: Principal, abandon: () => void): () => void {
    const key = `${tenant} ${id}`
    const waiting = this.#waiting.get(key) ?? new Set()
    this.#waiting.set(key, waiting.add(abandon))
    if (waiting.size > this.#bound) for (const oldest of [...waiting].slice(0, waiting.size - this.#bound)) oldest()
    return () => {
      waiting.delete(abandon)
      if (waiting.size === 0) this.#waiting.delete(key)
    }
  }
}
