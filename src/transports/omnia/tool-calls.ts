export interface ToolCallsOptions {
  readonly ackMs: number
  readonly resultMs: number
  /** The client did not do what it should in time. */
  readonly onLate: (id: string, reason: string) => void
}

type Timer = ReturnType<typeof setTimeout>

/** Calls that were put to the client: it must say soon that it works on one, and then has time for it. */
export class ToolCalls {
  readonly #options: ToolCallsOptions
  readonly #timers = new Map<string, Timer>()

  constructor(options: ToolCallsOptions) {
    this.#options = options
  }

  asked(id: string): void {
    this.#wait(id, this.#options.ackMs, 'client did not acknowledge tool call within timeout')
  }

  /** One that nobody waits for is no mistake: some clients acknowledge whatever they are shown. */
  acknowledged(id: string): void {
    if (this.#timers.has(id)) this.#wait(id, this.#options.resultMs, 'client did not answer tool call within timeout')
  }

  settled(id: string): void {
    clearTimeout(this.#timers.get(id))
    this.#timers.delete(id)
  }

  clear(): void {
    for (const timer of this.#timers.values()) clearTimeout(timer)
    this.#timers.clear()
  }

  #wait(id: string, ms: number, reason: string): void {
    this.settled(id)
    const late = (): void => {
      this.#timers.delete(id)
      this.#options.onLate(id, reason)
    }
    this.#timers.set(id, setTimeout(late, ms))
  }
}
