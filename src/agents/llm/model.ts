import { chosenIn } from '../../core/agent-kit/choices.ts'
import type { ModelRequest, Provider } from '../../core/ports/provider.ts'
import { isRecord } from '../../protocol/json.ts'
import type { SessionConfig } from '../../protocol/session-config.ts'
import type { Price } from './prices.ts'

/** A model behind a provider, and how it is asked unless a client says otherwise. */
export interface Model {
  readonly provider: Provider
  readonly model: string
  /** In the provider's words: `temperature`, `max_tokens`, `thinking` … What a client asks for in its turn wins. */
  readonly settings?: Readonly<Record<string, unknown>>
  /** What it costs, where the table does not know or knows wrong. */
  readonly price?: Price
  /** Tokens that fit into one request, where the provider does not know. */
  readonly contextWindow?: number
}

/** `modelOf(openai({ apiKey }), 'gpt-5', { settings: { temperature: 0 } })`. */
export function modelOf(provider: Provider, model: string, options: Omit<Model, 'provider' | 'model'> = {}): Model {
  return { provider, model, ...options }
}

/** What a client calls it that chooses among the models of an agent. */
export function modelId({ provider, model }: Model): string {
  return `${provider.name}/${model}`
}

/** The models with the one first that the client chose. */
export function inChosenOrder(models: readonly Model[], config: SessionConfig): readonly Model[] {
  const { model } = chosenIn(config)
  const chosen = models.find((each) => modelId(each) === model)
  return chosen ? [chosen, ...models.filter((each) => each !== chosen)] : models
}

/** Words that mean the same: what a client says in one of them counts for all. */
const SAME: readonly (readonly string[])[] = [
  ['max_tokens', 'max_completion_tokens', 'max_output_tokens'],
  ['reasoning_effort', 'reasoning', 'thinking'],
]

/** The configuration with the model's settings, below what the client asks for in OpenAI's words or the provider's own. */
export function withSettings(config: SessionConfig, { provider: { name }, settings }: Model): SessionConfig {
  if (!settings) return config
  const asked = new Set(Object.keys(slot(config, 'openai')))
  for (const words of SAME) if (words.some((word) => asked.has(word))) for (const word of words) asked.add(word)
  const usual = Object.fromEntries(Object.entries(settings).filter(([key]) => !asked.has(key)))
  return { ...config, extensions: { ...config.extensions, [name]: { ...usual, ...slot(config, name) } } }
}

/** A tool that the model was made to call has been called: made to call it again, it would do so for ever. */
export function withFreeChoice(config: SessionConfig, provider: string): SessionConfig {
  let extensions = config.extensions
  for (const name of new Set(['openai', provider])) {
    const { tool_choice: choice, ...rest } = slot(config, name)
    if (choice !== undefined && choice !== 'none') extensions = { ...extensions, [name]: rest }
  }
  return extensions === config.extensions ? config : { ...config, ...(extensions && { extensions }) }
}

/** The model that answers: a client may name another one of the same provider. Under `openai` it names the agent. */
export function modelIn({ config, model }: ModelRequest, provider: string): string {
  const named = provider === 'openai' ? undefined : slot(config, provider)['model']
  return typeof named === 'string' && named !== '' ? named : model
}

/** Tokens that the answer may take of the window, if somebody said. */
export function maxTokensIn(config: SessionConfig, provider: string): number | undefined {
  for (const name of [provider, 'openai']) {
    const asked = slot(config, name)
    for (const word of SAME[0] ?? []) if (typeof asked[word] === 'number') return asked[word]
  }
  return undefined
}

function slot({ extensions }: SessionConfig, name: string): Readonly<Record<string, unknown>> {
  const own = extensions?.[name]
  return isRecord(own) ? own : {}
}
