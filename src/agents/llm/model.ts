import { chosenIn } from '../../core/agent-kit/choices.ts'
import type { Price } from '../../core/ports/models.ts'
import type { ModelRequest, Provider } from '../../core/ports/provider.ts'
import { UampError } from '../../protocol/errors.ts'
import { fieldsOf, isRecord } from '../../protocol/json.ts'
import type { SessionConfig } from '../../protocol/session-config.ts'
import { namedModel } from '../../providers/named.ts'
import { PRICES } from './prices.ts'

/** A model of a provider, and its default settings. */
export interface Model {
  readonly provider: Provider
  readonly model: string
  /** In the provider's words: `temperature`, `max_tokens`, `thinking` … A client's settings win. */
  readonly settings?: Readonly<Record<string, unknown>>
  /** Its price, if the table lacks it or has it wrong. */
  readonly price?: Price
  /** Tokens that fit into one request, if the provider does not know. */
  readonly contextWindow?: number
}

type ModelOptions = Omit<Model, 'provider' | 'model'>

/** `modelOf(openai({ apiKey }), 'gpt-5', { settings: { temperature: 0 } })`, or `modelOf('openai/gpt-5', { settings })`. */
export function modelOf(name: string, options?: ModelOptions): Model
export function modelOf(provider: Provider, model: string, options?: ModelOptions): Model
export function modelOf(of: Provider | string, model?: string | ModelOptions, options?: ModelOptions): Model {
  if (typeof of !== 'string') return { provider: of, model: model as string, ...options }
  return { ...namedModel(of, Object.keys(PRICES)), ...(model as ModelOptions | undefined) }
}

/** A model that may be given by its name. */
export function toModel(given: Model | string): Model {
  if (typeof given === 'string') return modelOf(given)
  // Nobody has checked the types of an agent in JavaScript.
  if (!isRecord(given) || !isRecord(given.provider)) {
    throw new UampError('invalid_request', "An agent needs a model: its name, such as 'openai/gpt-5-mini', or what modelOf returns")
  }
  return given
}

/** Its name for clients that choose among the models of an agent. */
export function modelId({ provider, model }: Model): string {
  return `${provider.name}/${model}`
}

/** The model of this id, if it is another one of a provider that the agent has: clients may name those, too. */
export function namedBy(id: string, models: readonly Model[]): Model | undefined {
  const provider = models.map((model) => model.provider).find(({ name }) => id.startsWith(`${name}/`) && id.length > name.length + 1)
  return provider && { provider, model: id.slice(provider.name.length + 1) }
}

/** The models of a turn: the one that the client chose is first, and of each provider it is the one that the client names. */
export function modelsFor(models: readonly Model[], config: SessionConfig, transport: string | undefined): readonly Model[] {
  const { model } = chosenIn(config)
  const chosen = models.find((each) => modelId(each) === model)
  const ordered = chosen ? [chosen, ...models.filter((each) => each !== chosen)] : models
  return ordered.map((each) => {
    const { provider, settings } = each
    const named = modelIn({ config: withSettings(config, each), model: each.model }, provider.name, transport)
    // Price and window are those of the model that they were given with.
    return named === each.model ? each : { provider, model: named, ...(settings && { settings }) }
  })
}

/** Settings that mean the same: if a client sets one, it replaces all of them. */
const SAME: readonly (readonly string[])[] = [
  ['max_tokens', 'max_completion_tokens', 'max_output_tokens'],
  ['reasoning_effort', 'reasoning', 'thinking'],
]

/** Adds the model's settings. Those of the client win, in OpenAI's words or the provider's own. */
export function withSettings(config: SessionConfig, { provider: { name }, settings }: Model): SessionConfig {
  if (!settings) return config
  const asked = new Set(Object.keys(slot(config, 'openai')))
  for (const words of SAME) if (words.some((word) => asked.has(word))) for (const word of words) asked.add(word)
  const usual = Object.fromEntries(Object.entries(settings).filter(([key]) => !asked.has(key)))
  return { ...config, extensions: { ...config.extensions, [name]: { ...usual, ...slot(config, name) } } }
}

/** Lifts a forced tool choice after the first call: the model would call the tool for ever. */
export function withFreeChoice(config: SessionConfig, provider: string): SessionConfig {
  let extensions = config.extensions
  for (const name of new Set(['openai', provider])) {
    const { tool_choice: choice, ...rest } = slot(config, name)
    if (choice !== undefined && choice !== 'none') extensions = { ...extensions, [name]: rest }
  }
  return extensions === config.extensions ? config : { ...config, ...(extensions && { extensions }) }
}

/**
 * The model that answers. A client may name another one of the same provider. Under `openai`, clients of OpenAI's protocols name the
 * agent, so there only a client of UAMP events names a model.
 */
function modelIn({ config, model }: Pick<ModelRequest, 'config' | 'model'>, provider: string, transport: string | undefined): string {
  const named = provider === 'openai' && transport !== 'events' ? undefined : slot(config, provider)['model']
  return typeof named === 'string' && named !== '' ? named : model
}

/** The bound on the answer's tokens, if one is set. */
export function maxTokensIn(config: SessionConfig, provider: string): number | undefined {
  for (const name of [provider, 'openai']) {
    const asked = slot(config, name)
    for (const word of SAME[0] ?? []) if (typeof asked[word] === 'number') return asked[word]
  }
  return undefined
}

function slot({ extensions }: SessionConfig, name: string): Readonly<Record<string, unknown>> {
  return fieldsOf(extensions?.[name])
}

/** How many sessions are remembered whose model is not the usual one. Of the oldest it is forgotten. */
const SESSIONS = 1000

/** Which model each session was told of last, where that is not the agent's first one. */
export class AnnouncedModels {
  readonly #usual: string
  readonly #others = new Map<string, string>()

  constructor(usual: Model) {
    this.#usual = modelId(usual)
  }

  /** True if the session has to be told that this model answers. */
  change(sessionId: string, model: Model): boolean {
    const id = modelId(model)
    const before = this.#others.get(sessionId) ?? this.#usual
    this.#others.delete(sessionId)
    if (id !== this.#usual) this.#others.set(sessionId, id)
    const [oldest] = this.#others.keys()
    if (this.#others.size > SESSIONS && oldest !== undefined) this.#others.delete(oldest)
    return id !== before
  }
}
