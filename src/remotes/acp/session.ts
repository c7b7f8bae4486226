import type { chosenIn } from '../../core/agent-kit/choices.ts'
import { unlessAborted } from '../../core/basics/time.ts'
import { UampError } from '../../protocol/errors.ts'
import type { ContentBlock } from '../../wire/acp/blocks.ts'
import { Inbox } from './inbox.ts'
import type { AcpProcess } from './process.ts'

/** Prompts that one program has at a time. More are refused: each may have an inbox full of what nobody reads. */
const PROMPTS = 128
/** How long a cancelled prompt may take to be answered before its session is given up. */
const CANCEL_MS = 5_000

/** Something that can be chosen for a session. */
export interface Setting {
  current: string | null | undefined
  readonly values: readonly string[]
  readonly request: (value: string) => readonly [method: string, params: object]
}

export interface SessionOptions {
  readonly id: string
  /** The run of the program that has it open. */
  readonly process: AcpProcess
  readonly settings: Readonly<Record<'mode' | 'model', Setting>>
  /** Where those who listen are found by the ids of their sessions. */
  readonly inboxes: Map<string, Inbox>
}

/** A session over there. It has one turn at a time. */
export class Session {
  readonly id: string
  readonly process: AcpProcess
  inbox = new Inbox(() => undefined)
  /** As the agent counts it. */
  cost = 0
  readonly #options: SessionOptions
  #answered: Promise<void> = Promise.resolve()
  /** A prompt has no answer, and was not cancelled. */
  #busy = false

  constructor(options: SessionOptions) {
    this.id = options.id
    this.process = options.process
    this.#options = options
  }

  /** Whether another turn may have it: not before what was cancelled is answered. */
  free(signal: AbortSignal): Promise<boolean> {
    const answered = unlessAborted(this.#answered, AbortSignal.any([signal, AbortSignal.timeout(CANCEL_MS)]))
    return answered.then(() => true).catch(() => false)
  }

  async choose(chosen: ReturnType<typeof chosenIn>, signal: AbortSignal): Promise<void> {
    for (const name of ['mode', 'model'] as const) {
      const setting = this.#options.settings[name]
      const value = chosen[name]
      if (value === undefined || value === setting.current || !setting.values.includes(value)) continue
      const [method, params] = setting.request(value)
      await this.process.ask(method, { sessionId: this.id, ...params }, signal)
      setting.current = value
    }
  }

  /** Resolves when the prompt is there. What is heard ends with its answer, or when nobody waits for that any more. */
  async prompt(prompt: readonly ContentBlock[], signal: AbortSignal): Promise<{ readonly answer: Promise<unknown> }> {
    const { inboxes } = this.#options
    if (inboxes.size >= PROMPTS) throw new UampError('overloaded', `The agent answers ${PROMPTS} prompts already`)
    const inbox = (this.inbox = new Inbox(() => this.#cancel()))
    inboxes.set(this.id, inbox)
    const { sent, answer } = this.process.request('session/prompt', { sessionId: this.id, prompt })
    this.#busy = true
    const over = (): void => {
      this.#busy = false
      inbox.end()
    }
    this.#answered = answer.then(over, over)
    signal.addEventListener('abort', () => inbox.end(), { once: true })
    try {
      await unlessAborted(sent, signal)
      return { answer }
    } catch (thrown) {
      this.leave()
      throw thrown
    }
  }

  /** The turn is over, or leaves it in the middle. */
  leave(): void {
    this.inbox.close()
    this.#options.inboxes.delete(this.id)
    this.#cancel()
  }

  #cancel(): void {
    if (this.#busy) this.process.notify('session/cancel', { sessionId: this.id })
    this.#busy = false
  }
}
