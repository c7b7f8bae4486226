import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import type { AgentPort } from '../core/ports/agent.ts'
import { UampError } from '../protocol/errors.ts'
import { isRecord } from '../protocol/json.ts'
import { agentFile, agentsIn, distinct, findConfig, isAgent } from '../config/agents.ts'
import { assemble, type AssembleContext, type Assembly } from '../config/assemble.ts'
import { detectModels } from '../config/detect.ts'
import { isData, readSource } from '../config/source.ts'

/** The agents to serve, and the settings that a file makes. */
export interface Setup {
  readonly agents: readonly AgentPort[]
  readonly settings: Partial<Assembly['settings']>
  /** Why models are served that no file names. */
  readonly notes: readonly string[]
  /** Set if the agents come from files that may change. */
  readonly reload?: { readonly assembly: Assembly; again(before: Assembly): Promise<Assembly> }
}

/**
 * Loads an agent module, a config, or a folder with one of them. Without a path it loads the config in this folder, else the demo and a
 * model for each API key in the environment.
 */
export async function loadSetup(path: string | undefined, context: AssembleContext, watch = false): Promise<Setup> {
  const given = path ?? findConfig('.')
  if (given === undefined) return byDefault(context)
  const file = fileAt(resolve(given))
  if (isData(file)) return fromConfig(file, context)
  const module = await context.modules.load(file)
  if (isConfig(module['default'], file)) return fromConfig(file, context)
  if (!watch) return { agents: distinct(agentsIn(module, file)), settings: {}, notes: [] }
  const again = () => ofModule(file, context)
  const assembly = await again()
  return { agents: assembly.agents, settings: assembly.settings, notes: [], reload: { assembly, again } }
}

/** A module that is served without a config. */
async function ofModule(file: string, { modules }: AssembleContext): Promise<Assembly> {
  const agents = distinct(agentsIn(await modules.load(file), file))
  return { agents, settings: { tokens: {} }, files: [file], built: new Map() }
}

async function byDefault(context: AssembleContext): Promise<Setup> {
  const [{ demo }, models] = await Promise.all([import('../agents/demo/index.ts'), detectModels(context)])
  return { agents: [demo(), ...models.map(({ agent }) => agent)], settings: {}, notes: models.map(({ note }) => note) }
}

async function fromConfig(file: string, context: AssembleContext): Promise<Setup> {
  const again = async (before?: Assembly) => assemble(await readSource(file, context.modules), context, before)
  const assembly = await again()
  return { agents: assembly.agents, settings: assembly.settings, notes: [], reload: { assembly, again } }
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
  throw new UampError('not_found', `There is no agent in ${path}: put an agent.ts, agent.js or uamp.config.yaml there, or name the file`)
}

function isConfig(value: unknown, file: string): boolean {
  return /\.config\.\w+$/.test(file) || (isRecord(value) && 'agents' in value && !isAgent(value))
}
