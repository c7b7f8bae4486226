import { UampError } from '../../protocol/errors.ts'
import { isRecord } from '../../protocol/json.ts'

/** Most levels of nested schemas, and of values that are compared. */
const DEPTH = 128
/** Characters that count as one step: reading a character is that much cheaper than checking a schema. */
const CHARACTERS = 32

/**
 * Bounds the steps of one check. Work that a stranger's schema or value can make longer is paid for here before it is done: a few
 * lines of references can ask for any amount of work, and the server answers nobody else meanwhile.
 */
export class JsonBudget {
  #left: number
  #depth = 0

  constructor(steps: number) {
    this.#left = steps
  }

  spend(steps: number): void {
    if ((this.#left -= steps) < 0) throw tooComplicated()
  }

  spendOn(text: string): void {
    this.spend(1 + text.length / CHARACTERS)
  }

  enter(): void {
    if (++this.#depth > DEPTH) throw tooComplicated()
  }

  leave(): void {
    this.#depth--
  }

  /** True if two values are equal as JSON, where members of an object have no order. */
  equal(a: unknown, b: unknown): boolean {
    this.spend(1)
    if (typeof a === 'string' && typeof b === 'string' && a.length === b.length) this.spendOn(a)
    if (a === b) return true
    if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false
    if (Array.isArray(a) !== Array.isArray(b)) return false
    this.enter()
    const names = Object.keys(a)
    this.spend(names.length * 2)
    const same =
      names.length === Object.keys(b).length &&
      names.every((name) => Object.hasOwn(b, name) && this.equal((a as Members)[name], (b as Members)[name]))
    this.leave()
    return same
  }

  /** JSON with sorted members, so that equal values have equal texts. */
  canonical(value: unknown): string {
    if (typeof value === 'string') this.spendOn(value)
    // Pays for the text, and for sorting the members of an object.
    this.spend(isRecord(value) ? 8 : 3)
    if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'undefined'
    this.enter()
    const text = Array.isArray(value)
      ? `[${value.map((entry) => this.canonical(entry)).join()}]`
      : `{${Object.keys(value)
          .sort()
          .map((name) => `${this.canonical(name)}:${this.canonical((value as Members)[name])}`)
          .join()}}`
    this.leave()
    return text
  }

  /** The JSON of some values for an error message, cut to this length. */
  shown(values: readonly unknown[], characters: number): string {
    let text = ''
    for (const value of values) {
      if (text.length > characters) break
      text += `${text === '' ? '' : ','}${isRecord(value) || Array.isArray(value) ? this.canonical(value) : JSON.stringify(value)}`
    }
    return short(text, characters)
  }
}

type Members = Readonly<Record<string, unknown>>

export function short(text: string, characters: number): string {
  return text.length > characters ? `${text.slice(0, characters)}…` : text
}

function tooComplicated(): UampError {
  return new UampError('invalid_request', 'The schema is too complicated to check')
}
