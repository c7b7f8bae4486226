import type { AgentPort } from '../core/ports/agent.ts'
import type { Gateway } from '../core/ports/session.ts'
import type { Agents, Host, Transport } from '../core/ports/transport.ts'
import { agentOffline } from '../core/basics/agent-offline.ts'

/** The protocols that a transport's routes are for. */
export type Serves = NonNullable<Transport['serves']>

export function servesOf({ name, serves = [name] }: Transport): Serves {
  return serves
}

/** True if the agent is offered through one of these protocols. */
export function isOffered({ protocols }: Pick<AgentPort, 'protocols'>, serves: Serves): boolean {
  return protocols === undefined || serves === 'all' || serves.some((protocol) => protocols.includes(protocol))
}

/**
 * The host as a transport sees it: agents that are not offered through it do not exist there, nor do their sessions and responses.
 * So a body or an id cannot reach an agent whose path is refused.
 */
export function hostFor<H extends Pick<Host, 'agents' | 'gateway'>>(host: H, serves: Serves): H {
  if (serves === 'all') return host
  const agents = offeredAgents(host.agents, serves)
  return { ...host, agents, gateway: offeredGateway(host, agents, serves) }
}

function offeredAgents(all: Agents, serves: Serves): Agents {
  const get = (name: string): AgentPort | undefined => {
    const agent = all.get(name)
    return agent && isOffered(agent, serves) ? agent : undefined
  }
  return { get, names: () => all.names().filter((name) => get(name) !== undefined) }
}

function offeredGateway({ gateway, agents: all }: Pick<Host, 'agents' | 'gateway'>, offered: Agents, serves: Serves): Gateway {
  /** An agent that was removed hides nothing: its sessions stay until it comes back. */
  const hides = (name: string): boolean => {
    const agent = all.get(name)
    return agent !== undefined && !isOffered(agent, serves)
  }
  const response: Gateway['response'] = async (id, principal) => {
    const found = await gateway.response(id, principal)
    return found && hides(found.agent) ? undefined : found
  }
  return {
    checkSlots: (value, length) => gateway.checkSlots(value, length),
    authorize: (principal, action, agent) => gateway.authorize(principal, action, agent),
    hold: (principal, bytes) => gateway.hold(principal, bytes),
    signs: (asked) => gateway.signs(asked),
    storeOf: (agent, principal) => gateway.storeOf(agent, principal),
    recoverWith: (keeper, recover) => gateway.recoverWith(keeper, recover),
    open: async (init) => {
      if (!hides(init.agent)) return gateway.open(init)
      throw agentOffline(`The agent "${init.agent}" is not offered through this protocol`, { agent: init.agent, agents: offered.names() })
    },
    attach: async (id, principal, action) => {
      const session = await gateway.attach(id, principal, action)
      if (!session || !hides(session.agent)) return session
      session.leave()
      return undefined
    },
    list: async (principal, page) => {
      const found = await gateway.list(principal, page)
      return { ...found, items: found.items.filter(({ agent }) => !hides(agent)) }
    },
    response,
    forget: async (id, principal) => (await response(id, principal)) !== undefined && gateway.forget(id, principal),
    remove: (id, principal) => gateway.remove(id, principal),
  }
}
