import { UampError } from '../../protocol/errors.ts'
import type { Unsent } from '../../protocol/events.ts'
import { omniaError } from './errors.ts'
import type { OmniaLimits } from './options.ts'

/** By session and call. Shared, as a call that one connection waits for may be acknowledged on another. */
export type Timers = Map<string, ReturnType<typeof setTimeout>>

export interface ToolCallsOptions {
  readonly limits: OmniaLimits
  readonly timers: Timers
  /** Of the session. */
  readonly place: string
  readonly send: (event: Unsent) => Promise<void>
}

/** Calls that were put to the client: it must say soon that it works on one, and then has time for it. */
export class ToolCalls {
  readonly #options: ToolCallsOptions
  /** Those that fail when nobody answers in time. Not those of others' answers: they know for themselves how long to wait. */
  readonly #own = new Set<string>()

  constructor(options: ToolCallsOptions) {
    this.#options = options
  }

  /** One of an answer that was asked for here. */
  asked(id: string): void {
    this.#own.add(id)
    this.#wait(id, this.#options.limits.toolAckMs, 'client did not acknowledge tool call within timeout')
  }

  /** One that nobody waits for is no mistake: some clients acknowledge whatever they are shown. */
  acknowledged(id: string): void {
    const { timers, limits } = this.#options
    if (timers.has(this.#key(id))) this.#wait(id, limits.toolResultMs, 'client did not answer tool call within timeout')
  }

  /** What became of a call. */
  async answer(id: string, { result, error }: { readonly result?: unknown; readonly error?: string | null | undefined }): Promise<void> {
    this.#settle(id)
    const failed = error != null && error !== ''
    const text = failed ? error : typeof result === 'string' ? result : JSON.stringify(result ?? null)
    const approved = !failed && result !== false
    // Whether a result or consent was asked for, maybe on another connection, the session knows: what it did not ask it does not take.
    const isTaken =
      (await this.#try({ type: 'tool.result', call_id: id, result: text, ...(failed && { is_error: true }) })) ||
      (await this.#try({ type: 'x.approval.response', approval_id: id, approved, ...(failed && { reason: error }) }))
    if (!isTaken) throw omniaError('INVALID_MESSAGE', 'not_found', 'no pending tool call')
  }

  clear(): void {
    for (const id of this.#own) this.#settle(id)
    this.#own.clear()
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
    const { timers } = this.#options
    clearTimeout(timers.get(this.#key(id)))
    timers.delete(this.#key(id))
  }

  #wait(id: string, ms: number, error: string): void {
    this.#settle(id)
    // It may have been answered over another protocol meanwhile.
    const late = (): void => void this.answer(id, { error }).catch(() => undefined)
    this.#options.timers.set(this.#key(id), setTimeout(late, ms))
  }

  #key(id: string): string {
    return `${this.#options.place} ${id}`
  }
}
