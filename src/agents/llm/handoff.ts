import { derivedTurn } from '../../core/agent-kit/derived-turn.ts'
import type { AgentPort, Turn } from '../../core/ports/agent.ts'
import type { Tool } from '../../core/ports/skill.ts'
import { UampError } from '../../protocol/errors.ts'
import { limits } from '../../protocol/limits.ts'
import { plainText, type Message } from '../../protocol/message.ts'

/** Where a turn can be handed to: an agent, or the handler of a skill that takes events of this type. */
export interface Handoff {
  readonly to: AgentPort | string
  /** Its name for the model. Default: the agent's name, or the event's type. */
  readonly name?: string
  /** When the model should hand over. Default: the agent's description. */
  readonly description?: string
}

/** Handoffs of one turn, as tools that the model calls. The first call counts. */
export class Handoffs {
  readonly tools: readonly Tool[]
  #chosen: { readonly to: AgentPort | string; readonly reason: string; readonly callId: string } | undefined

  constructor(handoffs: readonly Handoff[], through: readonly string[]) {
    this.tools = handoffs.map((handoff) => this.#tool(handoff, through))
  }

  get chosen() {
    return this.#chosen
  }

  #tool(handoff: Handoff, through: readonly string[]): Tool {
    const { to } = handoff
    const name = handoffName(handoff)
    return {
      name: `transfer_to_${name}`,
      description: `Hands the conversation over to ${name}. ${descriptionOf(handoff)}`.trim(),
      parameters: { type: 'object', properties: { reason: { type: 'string' } } },
      run: ({ reason = '' }, { callId }) => {
        if (typeof to !== 'string' && through.includes(to.name)) {
          throw new UampError('conflict', `${name} has had this turn already: answer yourself`)
        }
        if (this.#chosen) throw new UampError('conflict', 'The conversation is handed over already')
        this.#chosen = { to, reason: String(reason), callId }
        return `Handed over to ${name}`
      },
    }
  }
}

export function handoffName({ name, to }: Handoff): string {
  const given = name ?? (typeof to === 'string' ? to : to.name)
  return given.replaceAll(/[^a-zA-Z0-9_-]/g, '_').slice(0, 48)
}

function descriptionOf({ description, to }: Handoff): string {
  return description ?? (typeof to === 'string' ? '' : (to.description ?? ''))
}

/** The turn for the other agent: the conversation so far, without the calls that handed it over. */
export function handedTurn(turn: Turn, { messages, by, reason }: { messages: readonly Message[]; by: string; reason: string }): Turn {
  const note = reason === '' ? undefined : `The conversation was handed over by ${by}: ${reason}`
  const instructions = [turn.config.instructions, note].filter((text) => text !== undefined).join('\n\n')
  return derivedTurn(turn, {
    messages,
    said: undefined,
    config: { ...turn.config, ...(instructions !== '' && { instructions }) },
    through: [...(turn.through ?? []), by],
  })
}

/** The conversation without calls of these tools, which the next agent does not have. */
export function withoutCallsOf(names: ReadonlySet<string>, messages: readonly Message[]): Message[] {
  const gone = new Set(messages.flatMap(({ tool_calls = [] }) => tool_calls.filter(({ name }) => names.has(name)).map(({ id }) => id)))
  if (gone.size === 0) return [...messages]
  return messages.flatMap((message) => {
    if (message.tool_call_id !== undefined && gone.has(message.tool_call_id)) return []
    if (!message.tool_calls?.some(({ id }) => gone.has(id))) return [message]
    const calls = message.tool_calls.filter(({ id }) => !gone.has(id))
    const items = message.content_items?.filter((item) => item.type !== 'tool_call' || !gone.has(item.tool_call.id))
    if (calls.length === 0) return saidBeside(message)
    return [{ ...message, tool_calls: calls, ...(items && { content_items: items }) }]
  })
}

/** Keeps a text beside the call, but no thought: that was about the call. */
function saidBeside(message: Message): Message[] {
  const text = plainText(message)
  return text === '' ? [] : [{ role: 'assistant', content: text }]
}

/** Throws unless all names are different, and every provider accepts them. */
export function checkToolNames(names: readonly string[]): void {
  const seen = new Set<string>()
  for (const name of names) {
    if (!limits.toolName.test(name)) {
      throw new UampError('invalid_request', `A tool cannot be called "${name}": 1 to 64 letters, digits, "_" and "-"`)
    }
    if (seen.has(name)) throw new UampError('invalid_request', `Two tools are called "${name}"`)
    seen.add(name)
  }
}
