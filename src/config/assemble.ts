import { dirname, resolve } from 'node:path'
import type { AccessSettings } from '../auth/settings.ts'
import type { PaymentSettings } from '../payments/settings.ts'
import type { AgentPort } from '../core/ports/agent.ts'
import type { Logger } from '../core/ports/transport.ts'
import type { Environment } from '../providers/by-name.ts'
import type { TlsFiles } from '../server/node/tls.ts'
import { accessWith } from './access.ts'
import { checkConfig, type CheckedConfig } from './check.ts'
import { connectWith } from './connect.ts'
import { secretTokens, Variables } from './environment.ts'
import { Models, type NamedModel } from './models.ts'
import type { Modules } from './modules.ts'
import { checkNames, type Names } from './names.ts'
import { paymentsWith } from './payments.ts'
import { planEntry } from './plan.ts'
import type { Built, Plan } from './planned.ts'
import { Problems } from './problems.ts'
import type { ConnectEntry } from './schema.ts'
import { mistakesOf, type Source } from './source.ts'

/** What a config gives: its agents, and the settings of the server. */
export interface Assembly {
  readonly agents: readonly AgentPort[]
  readonly settings: Omit<
    CheckedConfig,
    'entries' | 'names' | 'brokenProviders' | 'providers' | 'prices' | 'access' | 'connect' | 'payments' | 'tls'
  > & {
    readonly tls?: TlsFiles
    readonly payments?: PaymentSettings
    readonly tokens: Readonly<Record<string, string>>
    readonly access?: AccessSettings
    readonly connect?: readonly ConnectEntry[]
  }
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
  const problems = new Problems(source)
  const { plans, settings } = await prepare(source, context, problems)
  // Programs are started only for a config that has no mistakes so far.
  problems.throwIfAny()
  const making = new Making(before?.built ?? new Map())
  try {
    for (const plan of inOrder(plans)) await making.make(plan)
    problems.throwIfAny()
    const agents = plans.flatMap((plan) => making.agentsOf(plan))
    return { agents, settings, files: [source.file, ...plans.flatMap(({ files }) => files)], built: making.built }
  } catch (thrown) {
    await making.undo()
    throw thrown
  }
}

/** What a config says, and all its mistakes that show without starting a program. */
export interface Examined {
  readonly settings: Assembly['settings']
  /** The models that its agents use. */
  readonly models: readonly NamedModel[]
  /** Variables of the environment that it needs, and whether they are set. */
  readonly variables: ReadonlyMap<string, boolean>
  /** One line for each. */
  readonly mistakes: readonly string[]
}

export async function examine(source: Source, context: AssembleContext): Promise<Examined> {
  const problems = new Problems(source)
  const { settings, models, variables } = await prepare(source, context, problems)
  return { settings, models: models.found, variables: variables.asked, mistakes: problems.any ? mistakesOf(problems.error) : [] }
}

interface Prepared {
  readonly models: Models
  readonly variables: Variables
  readonly plans: readonly Plan[]
  readonly settings: Assembly['settings']
}

/** Finds all mistakes that show without starting anything. Modules are loaded, as nothing else tells what they export. */
async function prepare(source: Source, context: AssembleContext, problems: Problems): Promise<Prepared> {
  const config = checkConfig(source, problems)
  const variables = new Variables(context.env, problems)
  const models = new Models({ providers: config.providers ?? {}, broken: config.brokenProviders, variables, problems })
  models.check()
  const plans: Plan[] = []
  for (const entry of config.entries) {
    const plan = await planEntry(entry, { ...context, source, config, variables, models, problems })
    if (plan) plans.push(plan)
  }
  const settings = settingsOf(config, source, { variables, problems })
  checkNames(config, namesOf(config, plans), problems)
  return { plans, settings, models, variables }
}

/** The agents of the config and of its modules, in the order of the entries. */
function namesOf({ entries, names }: CheckedConfig, plans: readonly Plan[]): Names {
  const modules = plans.flatMap(({ entry, brings = [] }) => brings.map((name) => ({ name, path: entry.path, from: 'module' as const })))
  const unknown = entries.filter(({ kind }) => kind === 'module').length > plans.filter(({ brings }) => brings).length
  const agents = [...names.agents, ...modules].toSorted((a, b) => Number(a.path[1]) - Number(b.path[1]))
  return { agents, open: names.open || unknown }
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
    if (!built) return
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

function settingsOf(
  config: CheckedConfig,
  source: Source,
  { variables, problems }: { variables: Variables; problems: Problems },
): Assembly['settings'] {
  const {
    entries: _e,
    names: _n,
    brokenProviders: _b,
    providers: _p,
    prices: _c,
    access: _a,
    connect: _o,
    payments,
    data,
    tls,
    ...rest
  } = config
  return {
    ...rest,
    ...(tls && { tls: filesIn(tls, dirname(source.file)) }),
    ...(data !== undefined && { data: data === 'memory' ? data : resolve(dirname(source.file), data) }),
    tokens: secretTokens(config.tokens ?? {}, variables, problems),
    ...(config.access && { access: accessWith(config.access, { variables, problems, tokens: config.tokens ?? {} }) }),
    ...(payments && { payments: paymentsWith(payments, { variables, problems }) }),
    ...(config.connect && { connect: connectWith(config.connect, { variables, problems, file: source.file }) }),
  }
}

/** The files of TLS, whose paths are relative to the config. */
function filesIn(files: NonNullable<CheckedConfig['tls']>, folder: string): TlsFiles {
  const { cert, key, clientCa } = files
  return { cert: resolve(folder, cert), key: resolve(folder, key), ...(clientCa !== undefined && { clientCa: resolve(folder, clientCa) }) }
}
