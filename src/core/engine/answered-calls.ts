import type { ToolCall } from '../../protocol/content.ts'
import type { Message } from '../../protocol/message.ts'

/**
 * Calls that the conversation holds the results of. A stateless client sends the conversation again with a tool's answer in it;
 * the turn is then run anew, and the same call, by name and arguments, after the last user message finds its result there.
 */
export class AnsweredCalls {
  readonly #recent: readonly Message[]
  readonly #taken = new Set<string>()

  constructor(messages: readonly Message[]) {
    const last = messages.at(-1)
    this.#recent = last?.role === 'user' ? [] : messages.slice(messages.findLastIndex(({ role }) => role === 'user') + 1)
  }

  /** The id that the call had and the message that answers it, each only once. */
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
