import type { EventOf, ServerEvent } from '../protocol/events.ts'
import type { ClientDraft } from './drafts.ts'
import type { Payments } from './payments.ts'

/** A function that the agent may call. Without `run`, answer the call with `session.send({ type: 'tool.result', … })`. */
export interface Tool {
  readonly description?: string
  /** JSON Schema of the arguments. */
  readonly parameters?: Record<string, unknown>
  /** Its result is sent as JSON; the agent gets an error that it throws. */
  run?(args: Record<string, unknown>, context: ToolContext): unknown
}

export interface ToolContext {
  readonly call_id: string
  /** Aborted when the agent no longer wants the result. */
  readonly signal: AbortSignal
}

export type OnApproval = (request: EventOf<'x.approval.request'>) => boolean | Promise<boolean>

export interface AnswerOptions {
  readonly tools: Readonly<Record<string, Tool>>
  readonly onApproval: OnApproval | undefined
  /** Undefined: the application pays. */
  readonly payments?: Payments | undefined
  /** The session is resumed: questions of the replay may have been answered long ago. */
  readonly resumed: boolean
  readonly send: (event: ClientDraft) => Promise<void>
}

/** A replay comes in one burst. After this much quiet it is over, and open questions are really open. */
const QUIET_MS = 100

interface Question {
  readonly response_id: string | undefined
  readonly stop: AbortController
  readonly isDemand?: true
  readonly answer: (signal: AbortSignal) => Promise<ClientDraft>
}

/** Answers the agent's questions: runs the client's tools, in parallel, asks for approvals, and pays. */
export class Answers {
  readonly #options: AnswerOptions
  readonly #open = new Map<string, Question>()
  #replaying: boolean
  #quiet: ReturnType<typeof setTimeout> | undefined

  constructor(options: AnswerOptions) {
    this.#options = options
    this.#replaying = options.resumed
  }

  see(event: ServerEvent): void {
    switch (event.type) {
      case 'tool.call':
        this.#call(event)
        break
      case 'x.approval.request':
        this.#approve(event)
        break
      case 'payment.required':
        this.#pay(event)
        break
      // The last demand has its answer, from here or from another client.
      case 'payment.accepted':
      case 'payment.error':
        for (const [id, { response_id, isDemand }] of this.#open) if (isDemand && response_id === event.response_id) this.#close(id)
        break
      case 'tool.call_done':
        this.#close(event.call_id)
        break
      case 'response.done':
      case 'response.error':
      case 'response.cancelled':
        for (const [id, { response_id }] of this.#open) if (response_id === event.response_id) this.#close(id)
        break
      default:
    }
    this.#options.payments?.see(event)
    if (this.#replaying) this.#wait()
  }

  stop(): void {
    clearTimeout(this.#quiet)
    this.#options.payments?.stop()
    for (const id of [...this.#open.keys()]) this.#close(id)
  }

  #call({ name, call_id, arguments: text, response_id }: EventOf<'tool.call'>): void {
    const { tools } = this.#options
    const tool = Object.hasOwn(tools, name) ? tools[name] : undefined
    if (!tool?.run) return
    const answer = async (signal: AbortSignal): Promise<ClientDraft> => {
      try {
        const result: unknown = await tool.run?.(JSON.parse(text || '{}') as Record<string, unknown>, { call_id, signal })
        return { type: 'tool.result', call_id, result: JSON.stringify(result) ?? 'null' }
      } catch (thrown) {
        const error = thrown instanceof Error ? thrown.message : String(thrown)
        return { type: 'tool.result', call_id, result: JSON.stringify({ error }), is_error: true }
      }
    }
    this.#ask(call_id, { response_id, answer })
  }

  #approve(request: EventOf<'x.approval.request'>): void {
    const { onApproval } = this.#options
    if (!onApproval) return
    const { approval_id, response_id } = request
    const answer = async (): Promise<ClientDraft> => {
      try {
        const approved: unknown = await onApproval(request)
        // The server would refuse any other value, and the agent would wait for another answer.
        if (typeof approved !== 'boolean') throw new TypeError(`onApproval returned ${String(approved)}, not true or false`)
        return { type: 'x.approval.response', approval_id, approved }
      } catch (thrown) {
        return { type: 'x.approval.response', approval_id, approved: false, reason: String(thrown) }
      }
    }
    this.#ask(approval_id, { response_id, answer })
  }

  #pay(demand: EventOf<'payment.required'>): void {
    const { payments } = this.#options
    if (!payments) return
    const { event_id, response_id } = demand
    this.#ask(event_id, { response_id, isDemand: true, answer: (signal) => payments.answer(demand, signal) })
  }

  #ask(id: string, question: Omit<Question, 'stop'>): void {
    this.#open.set(id, { ...question, stop: new AbortController() })
    if (!this.#replaying) void this.#answer(id)
  }

  async #answer(id: string): Promise<void> {
    const question = this.#open.get(id)
    if (!question) return
    const event = await question.answer(question.stop.signal)
    if (!this.#open.delete(id)) return
    // The server refuses it if the response is over, or another client was first.
    await this.#options.send(event).catch(() => undefined)
  }

  #close(id: string): void {
    const question = this.#open.get(id)
    this.#open.delete(id)
    question?.stop.abort()
  }

  #wait(): void {
    clearTimeout(this.#quiet)
    this.#quiet = setTimeout(() => {
      this.#replaying = false
      for (const id of this.#open.keys()) void this.#answer(id)
    }, QUIET_MS)
  }
}
