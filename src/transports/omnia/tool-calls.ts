import { UampError } from '../../protocol/errors.ts'
import type { Unsent } from '../../protocol/events.ts'
import { omniaError } from './errors.ts'
import type { OmniaLimits } from './options.ts'

/** The connections of a session, and timers of the calls that its clients have not answered. */
interface Place {
  lines: number
  readonly timers: Map<string, ReturnType<typeof setTimeout>>
}

/** By session. Shared, because a call that one connection showed may be acknowledged on another, and outlive the first. */
export type Places = Map<string, Place>

export interface ToolCallsOptions {
  readonly limits: OmniaLimits
  readonly places: Places
  /** The key of the session in `places`. */
  readonly place: string
  /** Whether this question has no answer yet. */
  readonly asks: (id: string) => boolean
  readonly send: (event: Unsent) => Promise<void>
}

/** Calls for the clients of a session. One client must acknowledge a call soon, and then has time to answer it. */
export class ToolCalls {
  readonly #options: ToolCallsOptions
  readonly #place: Place

  constructor(options: ToolCallsOptions) {
    const { places, place: name } = options
    this.#options = options
    this.#place = places.get(name) ?? { lines: 0, timers: new Map() }
    this.#place.lines++
    places.set(name, this.#place)
  }

  /** No other connection of Omnia has this session. */
  get isAlone(): boolean {
    return this.#place.lines === 1
  }

  /** A call of a response that a client of Omnia asked for. All connections see it; its time begins once. */
  asked(id: string): void {
    if (this.#place.timers.has(id) || !this.#options.asks(id)) return
    this.#wait(id, this.#options.limits.toolAckMs, 'client did not acknowledge tool call within timeout')
  }

  /** Acknowledging a call that nobody waits for is no mistake: some clients acknowledge every call they are shown. */
  acknowledged(id: string): void {
    if (!this.#place.timers.has(id)) return
    this.#wait(id, this.#options.limits.toolResultMs, 'client did not answer tool call within timeout')
  }

  /** Sends the outcome of a call. */
  async answer(id: string, { result, error }: { readonly result?: unknown; readonly error?: string | null | undefined }): Promise<void> {
    this.#settle(id)
    const failed = error != null && error !== ''
    const text = failed ? error : typeof result === 'string' ? result : JSON.stringify(result ?? null)
    const approved = !failed && result !== false
    // Only the session knows whether it asked for a result or for consent: it refuses the other.
    const isTaken =
      (await this.#try({ type: 'tool.result', call_id: id, result: text, ...(failed && { is_error: true }) })) ||
      (await this.#try({ type: 'x.approval.response', approval_id: id, approved, ...(failed && { reason: error }) }))
    if (!isTaken) throw omniaError('INVALID_MESSAGE', 'not_found', 'no pending tool call')
  }

  /** A response is over: stops the timers of its calls, but not those of another response that runs. */
  clear(): void {
    for (const id of this.#place.timers.keys()) if (!this.#options.asks(id)) this.#settle(id)
  }

  /** Without connections no call fails; a client that comes back has the full time again. */
  leave(): void {
    if (--this.#place.lines > 0) return
    for (const id of this.#place.timers.keys()) this.#settle(id)
    this.#options.places.delete(this.#options.place)
  }

  async #try(answer: Unsent): Promise<boolean> {
    try {
      await this.#options.send(answer)
      return true
    } catch (thrown) {
      if (UampError.from(thrown).code === 'not_found') return false
      throw thrown
    }
  }

  #settle(id: string): void {
    clearTimeout(this.#place.timers.get(id))
    this.#place.timers.delete(id)
  }

  #wait(id: string, ms: number, error: string): void {
    this.#settle(id)
    // Another protocol may have answered it meanwhile.
    const late = (): void => void this.answer(id, { error }).catch(() => undefined)
    this.#place.timers.set(id, setTimeout(late, ms))
  }
}
