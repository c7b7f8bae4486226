import type { Capabilities } from '../../protocol/capabilities.ts'
import type { Draft } from '../../protocol/events.ts'
import { checkPrice } from '../basics/price.ts'
import type { Ability, AgentPort } from '../ports/agent.ts'
import type { AgentPrice } from '../ports/payments.ts'
import type { Tool } from '../ports/skill.ts'

export interface AgentOptions {
  readonly description?: string | undefined
  readonly capabilities?: Partial<Capabilities>
  /** For cards and catalogues. */
  readonly abilities?: readonly Ability[]
  /** The agent's tools, for clients that call one directly. */
  readonly tools?: readonly Tool[]
  /** Keys and tokens that the agent sends to others: they are kept out of errors and logs. */
  readonly secrets?: readonly string[]
  /** What a response costs: `{ call: '0.01' }`. Default: nothing. Tools that the agent runs itself have a price of their own. */
  readonly price?: Omit<AgentPrice, 'tools'>
  /** The protocols that it is offered through: `events`, `completions` … Default: all. */
  readonly protocols?: readonly string[]
}

/** Makes an agent from one async generator, which yields events; the session does the rest. */
export function defineAgent(name: string, run: AgentPort['run'], options: AgentOptions = {}): AgentPort {
  const { description, capabilities, abilities, tools, secrets, price, protocols } = options
  const described = {
    ...(description !== undefined && { description }),
    ...(abilities && { abilities }),
    ...(tools && { tools }),
    ...(secrets && { secrets }),
    ...(price && { price: checkPrice(price) }),
    ...(protocols && { protocols }),
  }
  const provides = abilities?.map(({ id }) => id) ?? tools?.map((tool) => tool.name) ?? []
  const able = { ...(provides.length > 0 && { provides }), ...capabilities }
  return { name, ...described, capabilities: agentCapabilities(name, able), run }
}

/** The default capabilities of an agent, overridden by `given`. */
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

/** Updates the capabilities of a remote agent. Returns the event that tells open sessions of a change. */
export function learnt(agent: { capabilities: Capabilities }, capabilities: Capabilities): Draft | undefined {
  if (JSON.stringify(capabilities) === JSON.stringify(agent.capabilities)) return undefined
  agent.capabilities = capabilities
  return { type: 'capabilities', capabilities }
}
