import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { AgentPort } from '../core/ports/agent.ts'
import { UampError } from '../protocol/errors.ts'
import { isRecord } from '../protocol/json.ts'

const CONFIG_FILES = ['ts', 'mts', 'js', 'mjs', 'yaml', 'yml', 'json'].map((ending) => `uamp.config.${ending}`)
const AGENT_FILES = ['agent.ts', 'agent.mts', 'agent.js', 'agent.mjs', 'index.ts', 'index.mts', 'index.js', 'index.mjs']
const EXAMPLE = "`export default defineAgent('name', async function* (turn) { … })`"

/** The config file in a folder. */
export function findConfig(folder: string): string | undefined {
  return firstOf(CONFIG_FILES, folder)
}

/** The agent module in a folder. */
export function agentFile(folder: string): string | undefined {
  return firstOf(AGENT_FILES, folder)
}

function firstOf(names: readonly string[], folder: string): string | undefined {
  return names.map((name) => join(folder, name)).find((file) => existsSync(file))
}

/** Goes by the shape, because an agent may come from another copy of this package. */
export function isAgent(value: unknown): value is AgentPort {
  return isRecord(value) && typeof value['name'] === 'string' && isRecord(value['capabilities']) && typeof value['run'] === 'function'
}

/** All agents that a module exports, alone or in arrays, under any name. */
export function agentsIn(module: Readonly<Record<string, unknown>>, file: string): readonly AgentPort[] {
  const agents = new Set(Object.values(module).flat().filter(isAgent))
  if (agents.size > 0) return [...agents]
  throw new UampError('invalid_request', `${file} exports no agent${instead(module['default'])}. End it with one, as in ${EXAMPLE}`)
}

function instead(value: unknown): string {
  if (typeof value === 'function') return ', but a function: pass it to defineAgent, or export what it returns'
  if (isRecord(value) && 'run' in value) return ', but an object without a name or capabilities: defineAgent adds them'
  return ''
}

/** Throws if two agents have the same name. */
export function distinct(agents: readonly AgentPort[]): readonly AgentPort[] {
  const names = new Set<string>()
  for (const { name } of agents) {
    if (names.has(name)) throw new UampError('conflict', `Two agents are called "${name}": give each a name of its own`)
    names.add(name)
  }
  return agents
}
