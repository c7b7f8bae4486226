import type { Turn } from '../../core/ports/agent.ts'
import type { ToolCall, ToolResult } from '../../protocol/content.ts'
import { UampError } from '../../protocol/errors.ts'

/** Puts the calls of the other side to the client: it has no other tools than those that the client brought. */
export class Calls {
  readonly #turn: Turn
  readonly #offered: ReadonlySet<string>

  constructor(turn: Turn) {
    this.#turn = turn
    this.#offered = new Set(turn.config.tools?.map((tool) => tool.function.name))
  }

  /** The results, in the order of the calls. All are asked at once. */
  answered(calls: readonly ToolCall[]): Promise<ToolResult[]> {
    return Promise.all(calls.map((call) => this.#result(call)))
  }

  async #result({ id, name, arguments: args }: ToolCall): Promise<ToolResult> {
    try {
      if (!this.#offered.has(name)) throw new UampError('not_found', `There is no tool "${name}"`)
      // The other side has seen what the conversation holds.
      const options = { key: `tool.call ${id}`, anew: true }
      const answer = await this.#turn.ask('tool.call', { call_id: id, name, arguments: args }, options)
      const { result, is_error = false, content_items } = answer
      const status = is_error ? 'failed' : 'completed'
      return { call_id: id, result, status, is_error, ...(content_items && { content_items }) }
    } catch (thrown) {
      this.#turn.signal.throwIfAborted()
      return { call_id: id, result: JSON.stringify({ error: UampError.from(thrown).toBody() }), status: 'failed', is_error: true }
    }
  }
}
