import { statSync } from 'node:fs'
import { dirname, extname, resolve } from 'node:path'
import type { AgentPort } from '../core/ports/agent.ts'
import { UampError } from '../protocol/errors.ts'
import { isRecord } from '../protocol/json.ts'
import { agentFile, agentsIn, distinct, isAgent } from './agents.ts'
import { findConfig, parseConfig, readJson, withSecrets, type Config } from './config.ts'
import { loadModule } from './load-module.ts'

/** What to serve, and how, as far as a file says so. */
export interface Setup extends Omit<Config, 'agents'> {
  readonly agents: readonly AgentPort[]
}

/** From an agent module, a config, or a folder with one of them; without a path from the config in this folder, else the demo. */
export async function loadSetup(path: string | undefined): Promise<Setup> {
  const given = path ?? findConfig('.')
  if (given === undefined) {
    const { demo } = await import('../agents/demo/index.ts')
    return { agents: [demo()] }
  }
  const file = fileAt(resolve(given))
  if (extname(file) === '.json') return fromConfig(await readJson(file), file)
  const module = await loadModule(file)
  return isConfig(module['default'], file) ? fromConfig(module['default'], file) : { agents: distinct(agentsIn(module, file)) }
}

function fileAt(path: string): string {
  const stats = statSync(path, { throwIfNoEntry: false })
  if (!stats) {
    throw new UampError(
      'not_found',
      `There is no file ${path}. Name an agent module, a folder or a config; without one, the demo is served`,
    )
  }
  if (!stats.isDirectory()) return path
  const file = findConfig(path) ?? agentFile(path)
  if (file !== undefined) return file
  throw new UampError('not_found', `There is no agent in ${path}: put an agent.ts, agent.js or uamp.config.json there, or name the file`)
}

function isConfig(value: unknown, file: string): boolean {
  return /\.config\.\w+$/.test(file) || (isRecord(value) && 'agents' in value && !isAgent(value))
}

async function fromConfig(value: unknown, file: string): Promise<Setup> {
  const config = parseConfig(value, file)
  const found: AgentPort[] = []
  for (const entry of config.agents) found.push(...(typeof entry === 'string' ? await agentsAt(entry, file) : [entry]))
  const agents = distinct(found)
  const { defaultAgent, data } = config
  if (defaultAgent !== undefined && !agents.some(({ name }) => name === defaultAgent)) {
    const names = agents.map(({ name }) => name).join(', ')
    throw new UampError('invalid_request', `${file}: defaultAgent is "${defaultAgent}", but the agents are: ${names}`)
  }
  return {
    ...config,
    agents,
    tokens: withSecrets(config, process.env, file),
    ...(data !== undefined && data !== 'memory' && { data: resolve(dirname(file), data) }),
  }
}

async function agentsAt(entry: string, config: string): Promise<readonly AgentPort[]> {
  const path = resolve(dirname(config), entry)
  const stats = statSync(path, { throwIfNoEntry: false })
  const file = stats?.isDirectory() ? agentFile(path) : path
  if (!stats || file === undefined) {
    throw new UampError('not_found', `${config}: agents: there is no agent at ${path}. Paths are relative to the config`)
  }
  return agentsIn(await loadModule(file), file)
}
