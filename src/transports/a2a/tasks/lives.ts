import type { Live } from './live.ts'

/** The tasks that run in this process, by their key. As many as the gateway has sessions. */
export class Lives {
  readonly #lives = new Map<string, Live>()
  /** Streams that stay open while their task does not run. As many as there are connections. */
  readonly #waiting = new Map<string, Set<() => void>>()

  get(key: string): Live | undefined {
    return this.#lives.get(key)
  }

  add(live: Live): void {
    this.#lives.set(live.key, live)
  }

  remove(live: Live): void {
    if (this.#lives.get(live.key) === live) this.#lives.delete(live.key)
  }

  /** The task goes on, or is over without. */
  wake(key: string): void {
    const waiting = this.#waiting.get(key)
    this.#waiting.delete(key)
    for (const resolve of waiting ?? []) resolve()
  }

  /** Resolves when the task goes on or is over, or whoever waits has left. */
  next(key: string, signal: AbortSignal): Promise<void> {
    if (signal.aborted || this.#lives.has(key)) return Promise.resolve()
    return new Promise((resolve) => {
      const waiting = this.#waiting.get(key) ?? new Set()
      this.#waiting.set(key, waiting)
      const done = (): void => {
        signal.removeEventListener('abort', done)
        waiting.delete(done)
        if (waiting.size === 0 && this.#waiting.get(key) === waiting) this.#waiting.delete(key)
        resolve()
      }
      waiting.add(done)
      signal.addEventListener('abort', done)
    })
  }
}
