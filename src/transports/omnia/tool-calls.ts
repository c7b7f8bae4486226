import { UampError } from '../../protocol/errors.ts'
import type { Unsent } from '../../protocol/events.ts'
import { omniaError } from './errors.ts'
import type { OmniaLimits } from './options.ts'

type Timer = ReturnType<typeof setTimeout>
type Send = (event: Unsent) => Promise<void>

/** Calls that were put to the client: it must say soon that it works on one, and then has time for it. */
export class ToolCalls {
  readonly #limits: OmniaLimits
  readonly #send: Send
  readonly #timers = new Map<string, Timer>()

  constructor(limits: OmniaLimits, send: Send) {
    this.#limits = limits
    this.#send = send
  }

  asked(id: string): void {
    this.#wait(id, this.#limits.toolAckMs, 'client did not acknowledge tool call within timeout')
  }

  /** One that nobody waits for is no mistake: some clients acknowledge whatever they are shown. */
  acknowledged(id: string): void {
    if (this.#timers.has(id)) this.#wait(id, this.#limits.toolResultMs, 'client did not answer tool call within timeout')
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
    for (const id of this.#timers.keys()) this.#settle(id)
  }

  async #try(answer: Unsent): Promise<boolean> {
    try {
      await this.#send(answer)
      return true
    } catch (thrown) {
      if (UampError.from(thrown).code === 'not_found') return false
      throw thrown
    }
  }

  #settle(id: string): void {
    clearTimeout(this.#timers.get(id))
    this.#timers.delete(id)
  }

  #wait(id: string, ms: number, error: string): void {
    this.#settle(id)
    // It may have been answered on another connection meanwhile.
    const late = (): void => void this.answer(id, { error }).catch(() => undefined)
    this.#timers.set(id, setTimeout(late, ms))
  }
}
