import { readdirSync, statSync } from 'node:fs'
import { basename, dirname, resolve } from 'node:path'
import { nearest } from '../core/basics/nearest.ts'
import { agentAtRoot } from '../core/edge/asked.ts'
import type { AgentPort } from '../core/ports/agent.ts'
import { UampError } from '../protocol/errors.ts'
import { isRecord } from '../protocol/json.ts'
import { agentFile, agentsIn, distinct, findConfig, isAgent } from '../config/agents.ts'
import { assemble, type AssembleContext, type Assembly } from '../config/assemble.ts'
import { detectModels } from '../config/detect.ts'
import type { Modules } from '../config/modules.ts'
import { isData, readSource } from '../config/source.ts'
import { isOffered } from '../server/offered.ts'

/** The agents to serve, and the settings that a file makes. */
export interface Setup {
  readonly agents: readonly AgentPort[]
  readonly settings: Partial<Assembly['settings']>
  /** Why models are served that no file names. */
  readonly notes: readonly string[]
  /** An agent or a config in this folder that the user may have meant, and how to serve it. */
  readonly unused?: string
  /** What the agents were made of, if that is to be closed with them. */
  readonly assembly?: Assembly
  /** Makes the agents again. Set if they come from files that may change. */
  readonly again?: (before: Assembly) => Promise<Assembly>
}

/**
 * Loads an agent module, a config, or a folder with one of them. Without a path it loads the config in this folder, else the demo and a
 * model for each API key in the environment.
 */
export async function loadSetup(path: string | undefined, context: AssembleContext, watch = false): Promise<Setup> {
  const given = path ?? findConfig('.')
  if (given === undefined) return byDefault(context)
  const file = fileAt(resolve(given))
  if (await isConfigFile(file, context.modules)) return fromConfig(file, context)
  const again = () => ofModule(file, context)
  const assembly = await again()
  const config = path === undefined ? undefined : findConfig('.')
  return {
    agents: assembly.agents,
    settings: {},
    notes: [],
    ...(config !== undefined && { unused: `${config}: \`npx uamp serve\` without a file reads it` }),
    ...(watch && { assembly, again }),
  }
}

/** A module that is served without a config. */
async function ofModule(file: string, { modules }: AssembleContext): Promise<Assembly> {
  const agents = distinct(agentsIn(await modules.load(file), file))
  for (const agent of agents) checkAgent(agent)
  return { agents, settings: { tokens: {} }, files: [file], built: new Map() }
}

/** Throws if the agent cannot answer, and says what the user can do here. */
function checkAgent(agent: AgentPort): void {
  try {
    agent.prepare?.({})
  } catch (cause) {
    const why = `The agent "${agent.name}" cannot answer: ${(cause as Error).message} (.env is read, too)`
    throw new UampError('invalid_request', why, { cause })
  }
}

async function byDefault(context: AssembleContext): Promise<Setup> {
  const [{ demo }, models] = await Promise.all([import('../agents/demo/index.ts'), detectModels(context)])
  const file = agentFile('.')
  return {
    agents: [demo(), ...models.map(({ agent }) => agent)],
    settings: {},
    notes: models.map(({ note }) => note),
    // Other projects have an index.js, too.
    ...(file?.startsWith('agent.') && { unused: `${file}: \`npx uamp serve ${file}\` serves it` }),
  }
}

async function fromConfig(file: string, context: AssembleContext): Promise<Setup> {
  const again = async (before?: Assembly) => assemble(await readSource(file, context.modules), context, before)
  const assembly = await again()
  return { agents: assembly.agents, settings: assembly.settings, notes: [], assembly, again }
}

/** A remote agent. */
export interface RemoteChoice {
  /** As `remote` in a config. */
  readonly remote: Readonly<Record<string, unknown>>
  readonly name?: string
  /** What names it on the command line, for errors. */
  readonly option: string
}

export async function remoteSetup({ remote, name = 'remote', option }: RemoteChoice, context: AssembleContext): Promise<Setup> {
  const source = { file: option, value: { agents: [{ name, remote }] }, lineOf: () => undefined }
  const assembly = await assemble(source, context)
  return { agents: assembly.agents, settings: {}, notes: [], assembly }
}

/** The agent that is wanted, or the one that a server has at `/`. With a protocol, only agents that are offered through it. */
export function agentIn({ agents, settings }: Setup, wanted: string | undefined, protocol?: string): string {
  const names = agents.filter((agent) => protocol === undefined || isOffered(agent, [protocol])).map((agent) => agent.name)
  const name = wanted ?? agentAtRoot(names, settings.defaultAgent)
  if (name !== undefined && names.includes(name)) return name
  const choice = names.map((each) => `--agent ${each}`).join(', ')
  const hidden = agents.find((agent) => agent.name === name) ?? (names.length === 0 ? agents[0] : undefined)
  if (hidden) {
    const instead = choice === '' ? '' : `, or choose another: ${choice}`
    const message = `The agent "${hidden.name}" is not offered through ${protocol}. Add ${protocol} to its protocols${instead}`
    throw new UampError('invalid_request', message)
  }
  throw new UampError('invalid_request', `${name === undefined ? 'Choose an agent' : `There is no agent "${name}". Choose one`}: ${choice}`)
}

/** The file that a path stands for: itself, or the config or agent in a folder. */
export function fileAt(path: string): string {
  const stats = statSync(path, { throwIfNoEntry: false })
  if (!stats) {
    const near = neighbour(path)
    const next = near === undefined ? 'Name an agent module, a folder or a config' : `Did you mean ${near}?`
    throw new UampError('not_found', `There is no file ${path}. ${next}`)
  }
  if (!stats.isDirectory()) return path
  const file = findConfig(path) ?? agentFile(path)
  if (file !== undefined) return file
  throw new UampError('not_found', `There is no agent in ${path}: put an agent.ts, agent.js or uamp.config.yaml there, or name the file`)
}

/** The file in the same folder whose name the path most likely misspells. */
function neighbour(path: string): string | undefined {
  try {
    return nearest(basename(path), readdirSync(dirname(path)))
  } catch {
    return undefined
  }
}

/** True if a file is a config, and not an agent module. */
export async function isConfigFile(file: string, modules: Modules): Promise<boolean> {
  if (isData(file) || /\.config\.\w+$/.test(file)) return true
  const value = (await modules.load(file))['default']
  return isRecord(value) && 'agents' in value && !isAgent(value)
}
