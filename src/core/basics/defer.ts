/** Runs a callback after the events that are due now: `setImmediate` where there is one. Promise callbacks run before it. */
export type Defer = (run: () => void) => void

const globals = globalThis as { setImmediate?: (run: () => void) => unknown }

export const defer: Defer = globals.setImmediate ? (run) => void globals.setImmediate?.(run) : (run) => void setTimeout(run, 0)

/** Whatever is due runs before it resolves. */
export const nextTurn = (): Promise<void> => new Promise((resolve) => defer(resolve))

/** Collects what happened in one turn of the event loop, so that each log's readers are woken once and write in one piece. */
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
