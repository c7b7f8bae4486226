import { isSecretField } from './secret-names.ts'
import type { Redaction } from '../ports/redaction.ts'
import type { Logger } from '../ports/transport.ts'

/** What stands where a secret stood. */
export const REDACTED = '[redacted]'

/** How much of a value is looked into. What is beyond it is left out: nobody can say what is in it. */
const NODES = 10_000
const DEPTH = 64

interface WalkOptions {
  /** Leaves out fields that are secret by their name, and looks into errors. */
  readonly byName?: boolean
  /** Looks into the names of fields, too. */
  readonly names?: boolean
}

/** One way through a value: copies what changes, and keeps the rest as it is. */
export class Walk {
  readonly #text: (text: string) => string
  readonly #byName: boolean
  readonly #names: boolean
  /** What became of each object: some are met twice, some hold themselves. */
  readonly #met = new Map<object, unknown>()

  constructor(text: (text: string) => string, { byName = false, names = false }: WalkOptions = {}) {
    this.#text = text
    this.#byName = byName
    this.#names = names
  }

  through(value: unknown, depth = 0): unknown {
    if (typeof value === 'string') return this.#text(value)
    if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return value
    if (this.#met.has(value)) return this.#met.get(value)
    if (depth > DEPTH || this.#met.size >= NODES) return '[left out]'
    this.#met.set(value, '[circular]')
    const made = this.#copy(value, depth + 1)
    this.#met.set(value, made)
    return made
  }

  #copy(value: object, depth: number): unknown {
    if (Array.isArray(value)) {
      const copy = value.map((item: unknown) => this.through(item, depth))
      return copy.every((item, index) => item === value[index]) ? value : copy
    }
    if (value instanceof Error) return this.#byName ? this.#error(value, depth) : value
    let same = true
    const copy = Object.entries(value).map(([name, field]: [string, unknown]) => {
      const hidden = this.#byName && field !== undefined && field !== null && isSecretField(name)
      const clean = hidden ? REDACTED : this.through(field, depth)
      const cleanName = this.#names ? this.#text(name) : name
      same &&= clean === field && cleanName === name
      return [cleanName, clean] as const
    })
    return same ? value : Object.fromEntries(copy)
  }

  /** An error of the same kind. Its stack begins with its message, which may be cut off in the middle of a secret. */
  #error(error: Error, depth: number): Error {
    const message = this.#text(error.message)
    const stack = error.stack === undefined ? undefined : this.#text(error.stack.replace(error.message, () => message))
    const cause = this.through(error.cause, depth)
    const before = Object.fromEntries(Object.entries(error))
    const own = this.#copy(before, depth) as object
    if (message === error.message && stack === error.stack && cause === error.cause && own === before) return error
    const hidden = { enumerable: false, configurable: true, writable: true }
    const properties: PropertyDescriptorMap = { message: { value: message, ...hidden }, stack: { value: stack, ...hidden } }
    if (error.cause !== undefined) properties['cause'] = { value: cause, ...hidden }
    for (const [name, value] of Object.entries(own)) properties[name] ??= { value, ...hidden, enumerable: true }
    return Object.create(Object.getPrototypeOf(error) as object, properties) as Error
  }
}

/** An error without secrets of a call, with all that it was caused by. */
export function redactedError(thrown: unknown, secrets: Pick<Redaction, 'text'>): unknown {
  return new Walk(secrets.text, { byName: true }).through(thrown)
}

/** A log that writes no secret: neither one that is known, nor what a field's name says is one. */
export function redactedLog(log: Logger, secrets: Pick<Redaction, 'text'>): Logger {
  return (level, message, fields) => {
    const clean = fields && (new Walk(secrets.text, { byName: true, names: true }).through(fields) as Readonly<Record<string, unknown>>)
    log(level, secrets.text(message), clean)
  }
}
