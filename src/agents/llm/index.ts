import { agentCapabilities } from '../../core/agent-kit/define-agent.ts'
import { checkPrice } from '../../core/basics/price.ts'
import { derivedTurn } from '../../core/agent-kit/derived-turn.ts'
import type { AgentPort, Turn } from '../../core/ports/agent.ts'
import type { AgentPrice } from '../../core/ports/payments.ts'
import type { HandlerTurn, RoutedEvent, Skill, Tool } from '../../core/ports/skill.ts'
import type { Logger } from '../../core/ports/transport.ts'
import { withPrices } from '../../core/tools/tool-price.ts'
import type { Capabilities } from '../../protocol/capabilities.ts'
import { UampError } from '../../protocol/errors.ts'
import type { Draft } from '../../protocol/events.ts'
import { abilitiesOf } from '../abilities.ts'
import { Agent, instructed } from '../agent.ts'
import { checkFields, checkTools } from '../check-tools.ts'
import { checkToolNames, handedTurn, handoffName, type Handoff } from './handoff.ts'
import { KnownModels } from './known-models.ts'
import { modelLoop, type LoopOptions } from './loop.ts'
import { AnnouncedModels, modelId, namedBy, toModel, type Model } from './model.ts'
import type { PriceTable } from './prices.ts'

export type { Handoff } from './handoff.ts'
export { modelOf, type Model } from './model.ts'
export { costOf, priceOf, PRICES, type PriceTable } from './prices.ts'
export type { Price } from '../../core/ports/models.ts'

/** The most requests to the model in one turn. */
const STEPS = 16

export interface LlmAgentInit {
  readonly name: string
  readonly description?: string
  /** `modelOf(…)`, or its name, such as `openai/gpt-5`: then the environment has the key, such as `OPENAI_API_KEY`. */
  readonly model: Model | string
  /** Asked in this order if the model before fails before it has said anything. */
  readonly fallbacks?: readonly (Model | string)[]
  readonly instructions?: string
  readonly tools?: readonly Tool[]
  readonly skills?: readonly Skill[]
  /** Agents, or handlers of skills, that the model may hand the turn to. */
  readonly handoffs?: readonly (AgentPort | Handoff)[]
  /** The most requests to the model in one turn; one more fails with `tool_budget_exceeded`. Default: 16. */
  readonly maxSteps?: number
  /** Calls in one turn (64), time of each (60 s), characters of a result (256 Ki; the rest is cut off). */
  readonly limits?: LoopOptions['limits']
  /** Holds back an answer with a requested form, checks it, and repairs it once. Default: true. False streams it unchecked. */
  readonly checkOutput?: boolean
  /** Prices by `provider/model`. They replace and extend the built-in table. */
  readonly prices?: PriceTable
  /** Capabilities that replace and extend those of the model. */
  readonly capabilities?: Partial<Capabilities>
  /** What callers pay for a response: `{ input: '3', output: '15' }`. Default: nothing. `prices` are what the model costs you. */
  readonly price?: AgentPrice
  /** The protocols that it is offered through: `events`, `completions` … Default: all. */
  readonly protocols?: readonly string[]
  readonly log?: Logger
}

const INIT: Record<keyof LlmAgentInit, true> = {
  name: true,
  description: true,
  model: true,
  fallbacks: true,
  instructions: true,
  tools: true,
  skills: true,
  handoffs: true,
  maxSteps: true,
  limits: true,
  checkOutput: true,
  prices: true,
  price: true,
  capabilities: true,
  protocols: true,
  log: true,
}

export interface LlmAgent extends AgentPort {
  /** Resolves when `capabilities` includes what the provider says about the model. */
  readonly ready: Promise<void>
}

/** An agent that is a model with instructions and tools. */
export function llmAgent(init: LlmAgentInit): LlmAgent {
  const { name, description, tools = [], skills = [], log = () => undefined } = init
  checkFields(init, INIT, `The agent "${name}"`)
  const model = toModel(init.model)
  const models = [model, ...(init.fallbacks ?? []).map(toModel)]
  const handoffs = (init.handoffs ?? []).map((to): Handoff => ('to' in to ? to : { to }))
  const price = init.price && checkPrice(init.price)
  const allTools = (): readonly Tool[] => withPrices([...tools, ...skills.flatMap((skill) => skill.tools ?? [])], price)
  checkTools(allTools())
  checkToolNames([...allTools().map((tool) => tool.name), ...handoffs.map((handoff) => `transfer_to_${handoffName(handoff)}`)])
  checkEvents(handoffs, skills)

  const known = new KnownModels(init.prices)
  const asked = new Map<Model, Promise<Capabilities | undefined>>()
  const askProvider = (of: Model): Promise<Capabilities | undefined> => {
    const answer = asked.get(of) ?? of.provider.capabilities(of.model).catch(() => undefined)
    // Others are named by clients, who have no end of names.
    if (models.includes(of)) asked.set(of, answer)
    return answer
  }
  const capabilitiesOf = async (of: Model): Promise<Capabilities | undefined> => known.limited(await askProvider(of), of)
  const options: LoopOptions = {
    name,
    chain: {
      models,
      log,
      priceOf: (priced) => known.price(priced),
      unpriced: new Set<string>(),
      capabilitiesOf,
      describe: async (of) => mounted(describe(await capabilitiesOf(of), of === model ? name : modelId(of))),
    },
    tools: allTools,
    handoffs,
    maxSteps: init.maxSteps ?? STEPS,
    limits: init.limits ?? {},
    checkOutput: init.checkOutput ?? true,
    announced: new AnnouncedModels(model),
  }

  const describe = (able: Partial<Capabilities> = {}, id = name): Capabilities => {
    const provides = abilitiesOf(tools, skills).map((ability) => ability.id)
    return agentCapabilities(name, {
      ...able,
      id,
      provider: 'uamp',
      tools: { supports_tools: true, supports_parallel_tools: true, ...able.tools, built_in_tools: allTools().map((tool) => tool.name) },
      ...(provides.length > 0 && { provides }),
      ...(models.length > 1 && { extensions: { ...able.extensions, uamp: { models: models.map((of) => known.told(of)) } } }),
      ...init.capabilities,
    })
  }
  /** With the paths of the skills' routes, which are known once a server has mounted them. */
  const mounted = (described: Capabilities): Capabilities => {
    const endpoints = run.endpoints?.()
    return endpoints ? { ...described, endpoints } : described
  }
  /** What the provider said of the first model, once it has. */
  let able: Capabilities | undefined
  let capabilities = describe(known.limited({}, model))
  const ready = askProvider(model).then((answer) => {
    able = answer
    capabilities = describe(known.limited(able ?? {}, model))
  })

  const agents = new Map(handoffs.flatMap((handoff) => (typeof handoff.to === 'string' ? [] : [[handoffName(handoff), handoff.to]])))
  const run = isPlain(skills) ? plain(options, init) : composed(options, init)
  return {
    name,
    ...(description !== undefined && { description }),
    ...(init.protocols && { protocols: init.protocols }),
    ...(price && { price }),
    get secrets() {
      const givenTo = handoffs.flatMap(({ to }) => (typeof to === 'string' ? [] : (to.secrets ?? [])))
      return [...models.flatMap(({ provider }) => provider.secrets ?? []), ...skills.flatMap((skill) => skill.secrets ?? []), ...givenTo]
    },
    get capabilities() {
      return mounted(capabilities)
    },
    get abilities() {
      return abilitiesOf(tools, skills)
    },
    get tools() {
      return allTools()
    },
    ready,
    prepare(server) {
      for (const { provider } of models) provider.check?.()
      for (const { to } of handoffs) if (typeof to !== 'string') to.prepare?.(server)
      known.learn(server.models)
      capabilities = describe(known.limited(able ?? {}, model))
    },
    async capabilitiesOf(wanted) {
      const of = models.find((each) => modelId(each) === wanted || each.model === wanted) ?? namedBy(wanted, models)
      return of && mounted(describe(await capabilitiesOf(of), modelId(of)))
    },
    get handoffs() {
      return [...agents.keys(), ...(run.handoffs ?? [])]
    },
    run: (turn) => {
      const other = turn.handoff === undefined ? undefined : agents.get(turn.handoff)
      return other ? other.run(handedTurn(turn, { messages: turn.messages, by: name, reason: '' })) : run.run(turn)
    },
    ...(run.transports && { transports: run.transports }),
  }
}

/** Skills with only tools and prompts need no router between the model and the session. */
function isPlain(skills: readonly Skill[]): boolean {
  return skills.every(
    ({ handlers, observers, hooks, routes }) => !handlers?.length && !observers?.length && hooks === undefined && routes === undefined,
  )
}

type Runs = Pick<AgentPort, 'run' | 'transports' | 'handoffs'> & {
  readonly endpoints?: () => Capabilities['endpoints']
}

function plain(options: LoopOptions, { instructions, skills = [] }: LlmAgentInit): Runs {
  return {
    // Without handlers the loop yields only drafts for clients.
    run: (turn) => modelLoop(options, turn, () => instructed(turn, instructions, skills)) as AsyncIterable<Draft>,
  }
}

function composed(options: LoopOptions, { name, instructions, tools = [], skills = [], capabilities, price, log }: LlmAgentInit): Runs {
  const agent = new Agent({
    name,
    ...(instructions !== undefined && { instructions }),
    ...(log && { log }),
    tools,
    skills,
    ...(capabilities && { capabilities }),
    // For its tools alone: what an answer costs is charged once, around all of this.
    ...(price && { price }),
    handlers: [
      {
        name: `${name}-model`,
        // Below the handlers of skills, which may take an input or change it.
        priority: -1,
        subscribes: [/^input\./],
        process: (event, turn) => modelLoop(options, heard(event, turn), async () => turn.config),
      },
    ],
  })
  const { transports, handoffs } = agent
  return { run: (turn) => agent.run(turn), transports, handoffs, endpoints: () => agent.capabilities.endpoints }
}

/** The turn, with its last message as a handler before the model changed it: the text of a recording, for example. */
function heard(event: RoutedEvent, { given }: HandlerTurn): Turn {
  const said = event.type === 'input.text' && 'text' in event ? String(event.text) : undefined
  if (said === undefined || said === (given.messages.at(-1)?.content ?? '')) return given
  const messages = [...given.messages.slice(0, -1), { role: 'user' as const, content: said }]
  return derivedTurn(given, { messages })
}

function checkEvents(handoffs: readonly Handoff[], skills: readonly Skill[]): void {
  const taken = skills.flatMap((skill) => skill.handlers ?? []).flatMap(({ subscribes }) => subscribes)
  for (const { to } of handoffs) {
    if (typeof to !== 'string') continue
    if (!taken.some((type) => (typeof type === 'string' ? type === to : type.test(to)))) {
      throw new UampError('invalid_request', `No skill has a handler for "${to}", to which the model may hand over`)
    }
  }
}
