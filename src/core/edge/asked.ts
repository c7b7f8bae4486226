import { UampError } from '../../protocol/errors.ts'
import type { Host, KnownCall } from '../ports/transport.ts'
import type { EventOf } from '../../protocol/events.ts'
import type { SessionConfig } from '../../protocol/session-config.ts'
import type { ToolDefinition } from '../../protocol/tools.ts'
import type { AgentPort } from '../ports/agent.ts'
import type { SessionInit } from '../ports/session.ts'

/** The agent of `/`: the configured one, else the only one, else the demo. */
export function agentAtRoot(names: readonly string[], configured?: string): string | undefined {
  return configured ?? (names.length === 1 ? names[0] : names.find((name) => name === 'demo'))
}

/**
 * The agent for a request of a protocol that has a `model` field. At the root that field may name an agent. If it does not, the
 * path's agent answers, so that clients which send a vendor's model name work unchanged.
 */
export function chooseAgent(
  { agents, gateway }: Pick<Host, 'agents' | 'gateway'>,
  call: Pick<KnownCall, 'agent' | 'root' | 'principal'>,
  model?: string,
): string {
  const named = call.root && model !== undefined && agents.get(model) ? model : undefined
  const agent = named ?? call.agent
  if (agent === undefined || !agents.get(agent)) {
    const message = model === undefined ? 'Say which agent: name it as "model"' : `There is no agent "${model}" here`
    throw new UampError('agent_offline', message, { details: { agents: agents.names(), param: 'model' } })
  }
  if (named !== undefined) gateway.authorize(call.principal, 'call', named)
  return agent
}

type Changes = { [K in keyof SessionConfig]?: SessionConfig[K] | undefined }

/** A configuration with some fields replaced. Undefined fields replace nothing. */
export function withOverrides(config: SessionConfig, changes: Changes): SessionConfig {
  const isWhole = !Object.values(changes).includes(undefined)
  const given = isWhole ? changes : Object.fromEntries(Object.entries(changes).filter(([, value]) => value !== undefined))
  return { ...config, ...given } as SessionConfig
}

/** The configuration of a response (UAMP events §5.12); undefined if its `response.create` changes nothing. */
export function responseConfig(config: SessionConfig, create: EventOf<'response.create'>): SessionConfig | undefined {
  const { response, response_format } = create
  if (response_format !== undefined) return withOverrides(config, { ...response, response_format })
  return response && withOverrides(config, response)
}

type Owner = Pick<AgentPort, 'tools' | 'capabilities'>

/**
 * Refuses a client's tool that has the name of one of the agent's: calls of the agent's tool would go to the client, which could
 * then forge their results.
 */
export function checkClientTools(agent: Owner | undefined, offered: readonly ToolDefinition[] | undefined): void {
  if (!agent || !offered || offered.length === 0) return
  const own = ownTools(agent)
  const taken = offered.find((tool) => own.has(tool.function.name))?.function.name
  if (taken === undefined) return
  throw new UampError('invalid_request', `"${taken}" is a tool of the agent itself: give yours another name`, { details: { tool: taken } })
}

/** Refuses a session with tools that the client may not have, or with a handoff that the agent lacks. */
export function checkOpening(agent: AgentPort, { config, handoff }: Pick<SessionInit, 'config' | 'handoff'>): void {
  checkClientTools(agent, config.tools)
  const { name, handoffs = [] } = agent
  if (handoff === undefined || handoffs.includes(handoff)) return
  const known = handoffs.length === 0 ? 'it has none' : `there are: ${handoffs.join(', ')}`
  throw new UampError('invalid_request', `The agent "${name}" has no handoff "${handoff}": ${known}`, { details: { handoffs } })
}

/** Drops tools whose names the agent uses: for tools that the client did not name itself, such as those of an MCP server. */
export function withoutOwnTools(agent: Owner | undefined, tools: readonly ToolDefinition[]): ToolDefinition[] {
  const own = agent ? ownTools(agent) : new Set<string>()
  return tools.filter((tool) => !own.has(tool.function.name))
}

function ownTools({ tools = [], capabilities }: Owner): ReadonlySet<string> {
  return new Set([...tools.map(({ name }) => name), ...(capabilities.tools?.built_in_tools ?? [])])
}
