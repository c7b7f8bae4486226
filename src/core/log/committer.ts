import { UampError } from '../../protocol/errors.ts'
import type { Logger } from '../ports/transport.ts'

/** How long a delta waits to be committed together with others. Inputs of clients never wait. */
const ROUND_MS = 40
/** Pause after a failed commit. */
const RETRY_MS = 1000
/** How often a failing store is logged. Groups fail by the thousand, and the log file may be on the same full disk. */
const TELL_MS = 60_000

/** A log with events to commit. */
export interface Committable {
  commit(): Promise<void>
}

/** Commits the logs of a gateway in rounds: one timer for all of them, none per event. */
export class Committer {
  readonly #log: Logger
  #due = new Set<Committable>()
  #timer: ReturnType<typeof setTimeout> | undefined
  /** Logs whose commit failed: new events do not start another one before the pause is over. */
  readonly #failed = new Set<Committable>()
  #toldAt = -Infinity

  constructor(log: Logger) {
    this.#log = log
  }

  later(store: Committable): void {
    this.#due.add(store)
    this.#timer ??= setTimeout(() => this.#round(), ROUND_MS)
  }

  now(store: Committable): void {
    this.#due.delete(store)
    this.#commit(store)
  }

  #round(): void {
    this.#timer = undefined
    const due = this.#due
    this.#due = new Set()
    for (const store of due) this.#commit(store)
  }

  #commit(store: Committable): void {
    if (this.#failed.has(store)) return
    store.commit().catch((error: unknown) => {
      // The session was removed, or something else has written it: these events can never be stored.
      const isLost = error instanceof UampError && error.code === 'conflict'
      if (!isLost) this.#retry(store)
      const now = performance.now()
      if (now - this.#toldAt < TELL_MS) return
      this.#toldAt = now
      this.#log('error', `A group of events could not be stored${isLost ? '' : '; trying again'}`, { error })
    })
  }

  #retry(store: Committable): void {
    this.#failed.add(store)
    setTimeout(() => {
      this.#failed.delete(store)
      this.later(store)
    }, RETRY_MS)
  }
}
