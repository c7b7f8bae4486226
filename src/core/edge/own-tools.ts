import { UampError } from '../../protocol/errors.ts'
import type { ToolDefinition } from '../../protocol/tools.ts'
import type { AgentPort } from '../ports/agent.ts'

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

/** Drops tools whose names the agent uses: for tools that the client did not name itself, such as those of an MCP server. */
export function withoutOwnTools(agent: Owner | undefined, tools: readonly ToolDefinition[]): ToolDefinition[] {
  const own = agent ? ownTools(agent) : new Set<string>()
  return tools.filter((tool) => !own.has(tool.function.name))
}

function ownTools({ tools = [], capabilities }: Owner): ReadonlySet<string> {
  return new Set([...tools.map(({ name }) => name), ...(capabilities.tools?.built_in_tools ?? [])])
}
