import type { Capabilities } from '../protocol/capabilities.ts'
import type { Ability, AgentPort } from './ports/agent.ts'
import type { Tool } from './ports/skill.ts'

export interface AgentOptions {
  readonly description?: string
  readonly capabilities?: Partial<Capabilities>
  /** What it is good at, for cards and catalogues. */
  readonly abilities?: readonly Ability[]
  /** Its tools, for clients that call one by themselves. */
  readonly tools?: readonly Tool[]
}

/** An agent from one async generator: it yields events, and the session does the rest. */
export function defineAgent(name: string, run: AgentPort['run'], options: AgentOptions = {}): AgentPort {
  const { description, capabilities, abilities, tools } = options
  const described = { ...(description !== undefined && { description }), ...(abilities && { abilities }), ...(tools && { tools }) }
  return { name, ...described, capabilities: agentCapabilities(name, capabilities), run }
}

/** What every agent can do, unless it says otherwise. */
export function agentCapabilities(name: string, given: Partial<Capabilities> = {}): Capabilities {
  return {
    id: name,
    provider: 'uamp',
    modalities: ['text'],
    supports_streaming: true,
    supports_thinking: false,
    supports_caching: false,
    ...given,
  }
}
