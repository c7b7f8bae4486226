import { isSecretField } from './secret-names.ts'
import type { Redaction } from '../ports/redaction.ts'
import type { Logger } from '../ports/transport.ts'

/** Replaces a secret. */
export const REDACTED = '[redacted]'

/** How much of a value is searched. Everything beyond it is left out, because it may hold secrets. */
const NODES = 10_000
const DEPTH = 64

interface WalkOptions {
  /** Also replace fields whose names say that they are secret, and search errors. */
  readonly byName?: boolean
  /** Also search the names of fields. */
  readonly names?: boolean
}

/** Cleans a value in one pass: copies the parts that change, and keeps the rest. */
export class Walk {
  readonly #text: (text: string) => string
  readonly #byName: boolean
  readonly #names: boolean
  /** The clean form of each object, because a value may hold the same object twice, or contain itself. */
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

  /** An error of the same class. A secret that is cut off is found only at a text's end, so the clean message goes into the stack. */
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
    // The name of a DOMException is a getter that works only on the original.
    if (error instanceof DOMException) properties['name'] = { value: error.name, ...hidden }
    for (const [name, value] of Object.entries(own)) properties[name] ??= { value, ...hidden, enumerable: true }
    return Object.create(Object.getPrototypeOf(error) as object, properties) as Error
  }
}

/** An error without secrets, in its causes too. */
export function redactedError(thrown: unknown, secrets: Pick<Redaction, 'text'>): unknown {
  return new Walk(secrets.text, { byName: true }).through(thrown)
}

/** A logger that writes no secrets: neither known values, nor fields whose names say that they are secret. */
export function redactedLog(log: Logger, secrets: Pick<Redaction, 'text'>): Logger {
  return (level, message, fields) => {
    const clean = fields && (new Walk(secrets.text, { byName: true, names: true }).through(fields) as Readonly<Record<string, unknown>>)
    log(level, secrets.text(message), clean)
  }
}
