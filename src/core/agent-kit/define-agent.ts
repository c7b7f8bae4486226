import type { Capabilities } from '../../protocol/capabilities.ts'
import type { Draft } from '../../protocol/events.ts'
import type { Ability, AgentPort } from '../ports/agent.ts'
import type { Tool } from '../ports/skill.ts'

export interface AgentOptions {
  readonly description?: string | undefined
  readonly capabilities?: Partial<Capabilities>
  /** What it is good at, for cards and catalogues. */
  readonly abilities?: readonly Ability[]
  /** Its tools, for clients that call one by themselves. */
  readonly tools?: readonly Tool[]
  /** What it shows to others (keys, tokens): kept out of errors and logs. */
  readonly secrets?: readonly string[]
}

/** An agent from one async generator: it yields events, and the session does the rest. */
export function defineAgent(name: string, run: AgentPort['run'], options: AgentOptions = {}): AgentPort {
  const { description, capabilities, abilities, tools, secrets } = options
  const described = {
    ...(description !== undefined && { description }),
    ...(abilities && { abilities }),
    ...(tools && { tools }),
    ...(secrets && { secrets }),
  }
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

/** What an agent elsewhere says that it can do. Open sessions are told of a change. */
export function learnt(agent: { capabilities: Capabilities }, capabilities: Capabilities): Draft | undefined {
  if (JSON.stringify(capabilities) === JSON.stringify(agent.capabilities)) return undefined
  agent.capabilities = capabilities
  return { type: 'capabilities', capabilities }
}
