import { statSync } from 'node:fs'
import { loadModule } from '../cli/load-module.ts'

/** Modules as they are now: one that has changed since it was first loaded is loaded again. What it imports itself is not. */
export class Modules {
  readonly #first = new Map<string, string>()

  /** Differs from the one before when the file has changed. */
  version(file: string): string {
    const { mtimeMs = 0, size = 0 } = statSync(file, { throwIfNoEntry: false }) ?? {}
    return `${file} ${mtimeMs} ${size}`
  }

  load(file: string): Promise<Readonly<Record<string, unknown>>> {
    const version = this.version(file)
    const first = this.#first.get(file) ?? version
    this.#first.set(file, first)
    // At first under its own name, so that it is the same module for those who import it.
    return loadModule(file, first === version ? {} : { version })
  }
}
