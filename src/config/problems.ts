import type { UampError } from '../protocol/errors.ts'
import { configError, type Path, type Problem, type Source } from './source.ts'

/** Collects the mistakes of one config, so that all of them are reported at once. */
export class Problems {
  readonly #source: Source
  readonly #found = new Map<string, Problem>()
  #cause: unknown

  constructor(source: Source) {
    this.#source = source
    for (const problem of source.problems ?? []) this.#keep(problem)
  }

  /** Two agents may run into the same mistake, such as a key that their provider lacks. It is reported once. */
  add(path: Path, message: string, cause?: unknown): void {
    this.#keep({ path, message })
    this.#cause ??= cause
  }

  #keep(problem: Problem): void {
    this.#found.set(JSON.stringify([problem.path, problem.message, problem.line]), problem)
  }

  /** True if the field has a mistake already, so that what follows from it is not worth a message. */
  has(path: Path): boolean {
    const key = JSON.stringify(path)
    return [...this.#found.values()].some((problem) => JSON.stringify(problem.path) === key)
  }

  get any(): boolean {
    return this.#found.size > 0
  }

  get error(): UampError {
    return configError(this.#source, [...this.#found.values()], this.#cause)
  }

  throwIfAny(): void {
    if (this.any) throw this.error
  }
}
