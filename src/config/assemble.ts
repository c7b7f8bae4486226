import { dirname, resolve } from 'node:path'
import type { AgentPort } from '../core/ports/agent.ts'
import type { Logger } from '../core/ports/transport.ts'
import { distinct } from './agents.ts'
import { checkConfig, type CheckedConfig } from './check.ts'
import { secretTokens, Variables, type Environment } from './environment.ts'
import { Models } from './models.ts'
import type { Modules } from './modules.ts'
import { planEntry } from './plan.ts'
import type { Built, Plan } from './planned.ts'
import { configError, type Source } from './source.ts'

/** What a config gives: its agents, and the settings of the server. */
export interface Assembly {
  readonly agents: readonly AgentPort[]
  readonly settings: Omit<CheckedConfig, 'entries' | 'providers' | 'prices'> & { readonly tokens: Readonly<Record<string, string>> }
  /** The files that it was made from, the config first. */
  readonly files: readonly string[]
  readonly built: ReadonlyMap<string, Built>
}

export interface AssembleContext {
  readonly env: Environment
  readonly modules: Modules
  readonly log: Logger
}

/** Makes the agents of a config. Takes over what has not changed since `before`. */
export async function assemble(source: Source, context: AssembleContext, before?: Assembly): Promise<Assembly> {
  const config = checkConfig(source)
  const variables = new Variables(source, context.env)
  const models = new Models(source, { providers: config.providers ?? {}, variables })
  const plans = config.entries.map((entry) => planEntry(entry, { ...context, source, config, variables, models }))
  const settings = settingsOf(config, source, context.env)
  const making = new Making(before?.built ?? new Map())
  try {
    for (const plan of inOrder(plans)) await making.make(plan)
    const agents = distinct(plans.flatMap((plan) => making.agentsOf(plan)))
    checkDefault(config, source, agents)
    return { agents, settings, files: [source.file, ...plans.flatMap(({ files }) => files)], built: making.built }
  } catch (thrown) {
    await making.undo()
    throw thrown
  }
}

/** Releases what the agents hold, but for what the next assembly took over. */
export async function retire(before: Assembly | undefined, after?: Assembly): Promise<void> {
  const kept = new Set(after?.built.values())
  const gone = [...(before?.built.values() ?? [])].filter((built) => !kept.has(built))
  await Promise.allSettled(gone.map((built) => built.close()))
}

class Making {
  readonly built = new Map<string, Built>()
  readonly #before: ReadonlyMap<string, Built>
  readonly #agents = new Map<string, AgentPort>()
  readonly #prints = new Map<Plan, string>()
  /** The print of each agent's plan, by name. */
  readonly #made = new Map<string, string>()

  constructor(before: ReadonlyMap<string, Built>) {
    this.#before = before
  }

  async make(plan: Plan): Promise<void> {
    // An agent is made again if one that it hands over to was.
    const print = [plan.print, ...plan.needs.map((name) => this.#made.get(name) ?? '')].join('\n')
    const built = this.#before.get(print) ?? (await plan.build(this.#agents))
    this.built.set(print, built)
    this.#prints.set(plan, print)
    for (const agent of built.agents) {
      this.#agents.set(agent.name, agent)
      this.#made.set(agent.name, print)
    }
  }

  agentsOf(plan: Plan): readonly AgentPort[] {
    return this.built.get(this.#prints.get(plan) ?? '')?.agents ?? []
  }

  async undo(): Promise<void> {
    const made = [...this.built].filter(([print]) => !this.#before.has(print)).map(([, built]) => built)
    await Promise.allSettled(made.map((built) => built.close()))
  }
}

/** Puts each plan after those that it hands over to. `checkConfig` has refused cycles. */
function inOrder(plans: readonly Plan[]): readonly Plan[] {
  const ordered = new Set(plans.filter(({ needs }) => needs.length === 0))
  const visit = (plan: Plan): void => {
    if (ordered.has(plan)) return
    for (const name of plan.needs) {
      const needed = plans.find(({ entry }) => entry.kind === 'model' && entry.entry.name === name)
      if (needed) visit(needed)
    }
    ordered.add(plan)
  }
  for (const plan of plans) visit(plan)
  return [...ordered]
}

function settingsOf(config: CheckedConfig, source: Source, env: Environment): Assembly['settings'] {
  const { entries: _e, providers: _p, prices: _c, data, ...rest } = config
  return {
    ...rest,
    ...(data !== undefined && { data: data === 'memory' ? data : resolve(dirname(source.file), data) }),
    tokens: secretTokens(config.tokens ?? {}, source, env),
  }
}

function checkDefault({ defaultAgent }: CheckedConfig, source: Source, agents: readonly AgentPort[]): void {
  if (defaultAgent === undefined || agents.some(({ name }) => name === defaultAgent)) return
  const names = agents.map(({ name }) => name).join(', ')
  throw configError(source, [{ path: ['defaultAgent'], message: `is "${defaultAgent}", but the agents are: ${names}` }])
}
