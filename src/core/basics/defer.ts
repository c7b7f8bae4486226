const globals = globalThis as { setImmediate?: (run: () => void) => unknown }

/** Runs a callback after promise callbacks and events that are due now, by `setImmediate` where there is one. */
export const defer: (run: () => void) => void = globals.setImmediate
  ? (run) => void globals.setImmediate?.(run)
  : (run) => void setTimeout(run, 0)

/** Resolves in the next turn of the event loop, so that everything that is due runs before. */
export const nextTurn = (): Promise<void> => new Promise((resolve) => defer(resolve))

/** Runs callbacks together at the end of a turn of the event loop, so that a log wakes its readers once for many events. */
export class Ticker {
  #due: (() => void)[] = []

  schedule(run: () => void): void {
    if (this.#due.push(run) === 1) defer(() => this.#tick())
  }

  #tick(): void {
    const due = this.#due
    this.#due = []
    for (const run of due) run()
  }
}
