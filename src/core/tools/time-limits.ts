import { UampError } from '../../protocol/errors.ts'

/**
 * Time limits for calls under one signal, with only one listener on it. Not `AbortSignal.any`: Node never frees such a signal if
 * somebody leaves a listener on it.
 */
export class TimeLimits {
  readonly #parent: () => AbortSignal
  readonly #running = new Set<AbortController>()
  #listens = false

  constructor(parent: () => AbortSignal) {
    this.#parent = parent
  }

  /** Rejects when the time is over, even if `run` ignores its signal. */
  async within<T>(ms: number, name: string, run: (signal: AbortSignal) => T | Promise<T>): Promise<T> {
    const parent = this.#parent()
    parent.throwIfAborted()
    if (!this.#listens) parent.addEventListener('abort', () => this.#stop(parent.reason), { once: true })
    this.#listens = true
    const controller = new AbortController()
    const { signal } = controller
    const over = new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)))
    const timer = setTimeout(() => controller.abort(new UampError('timeout', `"${name}" took longer than ${ms} ms`)), ms)
    this.#running.add(controller)
    try {
      return await Promise.race([run(signal), over])
    } finally {
      clearTimeout(timer)
      this.#running.delete(controller)
    }
  }

  #stop(reason: unknown): void {
    for (const controller of this.#running) controller.abort(reason)
  }
}
