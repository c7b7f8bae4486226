import type { SessionInit } from '../ports/session.ts'

/** Stops a running response that nobody reads: at once, after the resume window, or never. */
export class Unread {
  readonly #windowMs: number
  readonly #stop: () => void
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(windowMs: number, stop: () => void) {
    this.#windowMs = windowMs
    this.#stop = stop
  }

  /** Call it whenever a response begins, or a reader comes or leaves. Undefined: no response runs, or somebody reads it. */
  check(onDetach: SessionInit['onDetach'] | undefined): void {
    this.clear()
    if (onDetach === undefined || onDetach === 'finish') return
    this.#timer = setTimeout(this.#stop, onDetach === 'cancel' ? 0 : this.#windowMs)
  }

  clear(): void {
    clearTimeout(this.#timer)
  }
}
