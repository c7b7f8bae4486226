import type { Turn } from '../../core/ports/agent.ts'
import { UampError } from '../../protocol/errors.ts'
import type { Question } from './incoming.ts'

type Call = Extract<Question, { type: 'tool.call' }>
type Approval = Extract<Question, { type: 'x.approval.request' }>

/** Puts questions of the other side to our client, and gives the event that answers each of them there. */
export class Answers {
  readonly #turn: Turn
  readonly #asked = new Map<string, number>()

  constructor(turn: Turn) {
    this.#turn = turn
  }

  async to(question: Question): Promise<object> {
    switch (question.type) {
      case 'tool.call':
        return this.#result(question)
      case 'x.approval.request':
        return this.#approval(question)
      case 'payment.required': {
        const { requirements, extra } = question
        const { payment } = await this.#turn.ask('payment.required', { requirements, ...(extra && { extra }) })
        return { type: 'payment.submit', payment }
      }
    }
  }

  async #result({ call_id, name, arguments: args }: Call): Promise<object> {
    try {
      // The other side has seen what the conversation holds.
      const options = { key: `tool.call ${call_id}`, anew: true }
      const { result, is_error, content_items } = await this.#turn.ask('tool.call', { call_id, name, arguments: args }, options)
      return { type: 'tool.result', call_id, result, ...(is_error && { is_error }), ...(content_items && { content_items }) }
    } catch (thrown) {
      this.#turn.signal.throwIfAborted()
      return { type: 'tool.result', call_id, result: JSON.stringify({ error: UampError.from(thrown).toBody() }), is_error: true }
    }
  }

  async #approval({ approval_id, message, tool_call, options }: Approval): Promise<object> {
    const question = { approval_id, message, ...(tool_call && { tool_call }), ...(options && { options }) }
    try {
      const key = this.#key(`approval ${message} ${tool_call?.name} ${tool_call?.arguments}`)
      const { approved, option, reason } = await this.#turn.ask('x.approval.request', question, { key })
      const how = { ...(option !== undefined && { option }), ...(reason !== undefined && { reason }) }
      return { type: 'x.approval.response', approval_id, approved, ...how }
    } catch (thrown) {
      this.#turn.signal.throwIfAborted()
      return { type: 'x.approval.response', approval_id, approved: false, reason: UampError.from(thrown).code }
    }
  }

  /** By what is asked: in a turn that is run again the ids are new, and an answer must not go to another question. */
  #key(content: string): string {
    const number = (this.#asked.get(content) ?? 0) + 1
    this.#asked.set(content, number)
    return `${content} #${number}`
  }
}
