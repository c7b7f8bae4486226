import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { AgentPort } from '../core/ports/agent.ts'
import { UampError } from '../protocol/errors.ts'
import { isRecord } from '../protocol/json.ts'

const AGENT_FILES = ['agent.ts', 'agent.mts', 'agent.js', 'agent.mjs', 'index.ts', 'index.mts', 'index.js', 'index.mjs']
const EXAMPLE = "`export default defineAgent('name', async function* (turn) { … })`"

/** By its form: it may come from another copy of this package. */
export function isAgent(value: unknown): value is AgentPort {
  return isRecord(value) && typeof value['name'] === 'string' && isRecord(value['capabilities']) && typeof value['run'] === 'function'
}

/** The file of a folder that has the agent. */
export function agentFile(folder: string): string | undefined {
  return AGENT_FILES.map((name) => join(folder, name)).find((file) => existsSync(file))
}

/** All agents that a module exports, alone or in arrays, under whatever name. */
export function agentsIn(module: Readonly<Record<string, unknown>>, file: string): readonly AgentPort[] {
  const agents = new Set(Object.values(module).flat().filter(isAgent))
  if (agents.size > 0) return [...agents]
  throw new UampError('invalid_request', `${file} exports no agent${instead(module['default'])}. End it with one, as in ${EXAMPLE}`)
}

function instead(value: unknown): string {
  if (typeof value === 'function') return ', but a function: hand it to defineAgent, or export what it returns'
  if (isRecord(value) && 'run' in value) return ', but an object that lacks a name or capabilities: defineAgent adds them'
  return ''
}

/** Each has a name of its own. */
export function distinct(agents: readonly AgentPort[]): readonly AgentPort[] {
  const names = new Set<string>()
  for (const { name } of agents) {
    if (names.has(name)) throw new UampError('conflict', `Two agents are called "${name}": give each a name of its own`)
    names.add(name)
  }
  return agents
}
