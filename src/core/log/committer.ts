import type { Logger } from '../ports/transport.ts'

/** How long a delta waits for company before it is committed. What a client says is not made to wait. */
const ROUND_MS = 40
/** Pause before the store is tried again after it failed. */
const RETRY_MS = 1000
/** While it fails there is a line so often, and not for each group: those come by the thousand, and the log may be on the same disk. */
const TELL_MS = 60_000

/** A log that has something for the store. */
export interface Committable {
  commit(): Promise<void>
}

/** Commits the logs of a gateway in rounds: one timer for all of them, none per event. */
export class Committer {
  readonly #log: Logger
  #due = new Set<Committable>()
  #timer: ReturnType<typeof setTimeout> | undefined
  /** Those that are tried again later; until then new events do not make them try. */
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
      this.#failed.add(store)
      setTimeout(() => {
        this.#failed.delete(store)
        this.later(store)
      }, RETRY_MS)
      const now = performance.now()
      if (now - this.#toldAt < TELL_MS) return
      this.#toldAt = now
      this.#log('error', 'The store did not take a group of events; it is tried again', { error })
    })
  }
}
