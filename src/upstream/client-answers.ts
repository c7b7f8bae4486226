import type { ToolCall, ToolResult } from '../protocol/content.ts'
import { UampError } from '../protocol/errors.ts'
import type { EventOf, Unsent } from '../protocol/events.ts'
import type { QuestionDraft, Questions, Turn } from '../core/ports/agent.ts'
import { present } from '../wire/fields.ts'
import { Payer } from './payer.ts'

type Fields<T extends 'tool.call' | 'x.approval.request' | 'payment.required', K extends keyof EventOf<T>> = Pick<EventOf<T>, 'type' | K>

/** Questions that another uamp server may ask. */
export type UampQuestion =
  | Fields<'tool.call', 'call_id' | 'name' | 'arguments'>
  | Fields<'x.approval.request', 'approval_id' | 'message' | 'tool_call' | 'options' | 'extensions'>
  | Fields<'payment.required', 'requirements' | 'extra'>

type Decision = Pick<EventOf<'x.approval.response'>, 'approved' | 'option' | 'reason' | 'extensions'>

export interface ClientAnswersOptions {
  /** The tools that the other side may call; undefined: any. */
  readonly offered?: ReadonlySet<string>
  /** Identifies calls by their order, because a turn that runs again gives them other ids. */
  readonly numbered?: boolean
  /** Pays for the turn. Default: our client is asked. */
  readonly payer?: Payer
}

/** Passes the questions of a remote agent to our client. */
export class ClientAnswers {
  readonly #turn: Turn
  readonly #options: ClientAnswersOptions
  readonly #payer: Payer
  readonly #asked = new Map<string, number>()

  constructor(turn: Turn, options: ClientAnswersOptions = {}) {
    this.#turn = turn
    this.#options = options
    this.#payer = options.payer ?? new Payer(turn, { name: 'The agent' })
  }

  /** The result of the client's tool. A failure is a result, too: the remote model reads it. */
  async result({ id, name, arguments: args }: ToolCall): Promise<ToolResult> {
    const { offered, numbered = false } = this.#options
    try {
      if (offered && !offered.has(name)) throw new UampError('not_found', `There is no tool "${name}"`)
      // The remote agent knows the results in the conversation, so this is a new question.
      const options = numbered ? {} : { key: `tool.call ${id}`, anew: true }
      const answer = await this.#turn.ask('tool.call', { call_id: id, name, arguments: args }, options)
      const { result, is_error = false, content_items } = answer
      return { call_id: id, result, status: is_error ? 'failed' : 'completed', is_error, ...(content_items && { content_items }) }
    } catch (thrown) {
      this.#turn.signal.throwIfAborted()
      return { call_id: id, result: JSON.stringify({ error: UampError.from(thrown).toBody() }), status: 'failed', is_error: true }
    }
  }

  /** Rejects if nobody decides. */
  async decision(question: QuestionDraft<'x.approval.request'>): Promise<Decision> {
    const { message, tool_call } = question
    // Keyed by its content: a turn that runs again has new ids, and an answer must not go to another question.
    const content = `approval ${message} ${tool_call?.name} ${tool_call?.arguments}`
    const number = (this.#asked.get(content) ?? 0) + 1
    this.#asked.set(content, number)
    const answer = await this.#turn.ask('x.approval.request', question, { key: `${content} #${number}` })
    const { approved, option, reason, extensions } = answer
    return { approved, ...present({ option, reason, extensions }) }
  }

  /** The event that answers a question of the remote agent. */
  async to(question: UampQuestion): Promise<Unsent<Questions[keyof Questions]>> {
    switch (question.type) {
      case 'tool.call': {
        const { call_id: id, name, arguments: args } = question
        const { call_id, result, is_error, content_items } = await this.result({ id, name, arguments: args })
        return { type: 'tool.result', call_id, result, ...(is_error && { is_error }), ...(content_items && { content_items }) }
      }
      case 'x.approval.request': {
        const { approval_id, message, tool_call, options, extensions } = question
        const asked = { approval_id, message, ...present({ tool_call, options, extensions }) }
        const decision = await this.decision(asked).catch((thrown: unknown) => {
          this.#turn.signal.throwIfAborted()
          return { approved: false, reason: UampError.from(thrown).code }
        })
        return { type: 'x.approval.response', approval_id, ...decision }
      }
      case 'payment.required': {
        const { requirements, extra } = question
        return { type: 'payment.submit', payment: await this.#payer.pay({ requirements, extra }) }
      }
    }
  }
}

/** The names of the tools that the client brought. */
export function offeredBy({ config }: Pick<Turn, 'config'>): ReadonlySet<string> {
  return new Set(config.tools?.map((tool) => tool.function.name))
}
