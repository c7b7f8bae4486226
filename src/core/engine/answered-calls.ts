import type { ToolCall } from '../../protocol/content.ts'
import type { Message } from '../../protocol/message.ts'

/**
 * Finds the results of tool calls in the conversation. A stateless client sends the conversation again with a tool's result in it.
 * The turn is then run again, and a call with the same name and arguments takes the result after the last user message.
 */
export class AnsweredCalls {
  readonly #recent: readonly Message[]
  readonly #taken = new Set<string>()

  constructor(messages: readonly Message[]) {
    const last = messages.at(-1)
    this.#recent = last?.role === 'user' ? [] : messages.slice(messages.findLastIndex(({ role }) => role === 'user') + 1)
  }

  /** The earlier call's id and the message with its result. Each result is taken only once. */
  take({ name, arguments: args }: Pick<ToolCall, 'name' | 'arguments'>): { readonly id: string; readonly result: Message } | undefined {
    if (this.#recent.length === 0) return undefined
    const same = (call: ToolCall): boolean => call.name === name && call.arguments === args && !this.#taken.has(call.id)
    const id = this.#recent.flatMap(({ tool_calls }) => tool_calls ?? []).find(same)?.id
    const result = id === undefined ? undefined : this.#recent.find(({ tool_call_id }) => tool_call_id === id)
    if (id === undefined || !result) return undefined
    this.#taken.add(id)
    return { id, result }
  }
}
