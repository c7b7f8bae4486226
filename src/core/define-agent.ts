import type { Capabilities } from '../protocol/capabilities.ts'
import type { AgentPort } from './ports/agent.ts'

export interface AgentOptions {
  readonly description?: string
  readonly capabilities?: Partial<Capabilities>
}

/** An agent from one async generator: it yields events, and the session does the rest. */
export function defineAgent(name: string, run: AgentPort['run'], { description, capabilities }: AgentOptions = {}): AgentPort {
  return { name, ...(description !== undefined && { description }), capabilities: agentCapabilities(name, capabilities), run }
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
