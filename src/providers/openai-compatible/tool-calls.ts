import { callDraft } from '../../upstream/answer-drafts.ts'
import { UampError } from '../../protocol/errors.ts'
import type { Draft } from '../../protocol/events.ts'
import { fieldsOf, isRecord } from '../../protocol/json.ts'

/** The most characters of arguments that wait for their tool's name. */
const HELD = 1024 * 1024

interface Call {
  /** The server's own id. */
  readonly given: string | undefined
  readonly id: string
  name: string
  /** Arguments that came before the name. */
  held: string
}

/** Puts the calls of one answer together from their pieces. */
export class ToolCalls {
  readonly #byIndex = new Map<number, Call>()
  readonly #taken: Set<string>
  readonly #newId: () => string
  #last: Call | undefined
  #count = 0

  /** `taken`: ids of earlier calls, because some servers count from zero in every answer. */
  constructor(taken: Set<string>, newId: () => string) {
    this.#taken = taken
    this.#newId = newId
  }

  add(piece: unknown, out: Draft[]): void {
    if (!isRecord(piece)) return
    const told = fieldsOf(piece['function'])
    const given = typeof piece['id'] === 'string' && piece['id'] !== '' ? piece['id'] : undefined
    const call = this.#find(piece['index'], given)
    const args = argumentsOf(told['arguments'])
    if (call.name === '') {
      call.held += args
      if (call.held.length > HELD) throw new UampError('provider_error', `A tool call without a name has more than ${HELD} characters`)
      if (typeof told['name'] !== 'string' || told['name'] === '') return
      call.name = told['name']
      out.push(callDraft(call.id, call.name, call.held))
      call.held = ''
    } else if (args !== '') {
      out.push(callDraft(call.id, call.name, args))
    }
  }

  #find(index: unknown, given: string | undefined): Call {
    const known = typeof index === 'number' ? this.#byIndex.get(index) : this.#last
    // Some servers give every call the index 0, or none. Then the ids differ.
    if (known && (given === undefined || known.given === undefined || given === known.given)) return known
    const call: Call = { given, id: this.#idFor(given), name: '', held: '' }
    this.#byIndex.set(typeof index === 'number' ? index : this.#count, call)
    this.#count++
    this.#last = call
    return call
  }

  #idFor(given: string | undefined): string {
    const id = given === undefined || this.#taken.has(given) ? `call_${this.#newId()}` : given
    this.#taken.add(id)
    return id
  }
}

/** Arguments are text, but a server that does not stream them may send an object. */
function argumentsOf(value: unknown): string {
  if (typeof value === 'string') return value
  return isRecord(value) ? JSON.stringify(value) : ''
}
