import type { HttpClient } from '../../core/ports/http.ts'
import { callUpstream, shortBounds } from '../../upstream/upstream.ts'
import type { Capabilities } from '../../protocol/capabilities.ts'
import { fieldsOf, recordsIn } from '../../protocol/json.ts'
import { present } from '../../wire/fields.ts'
import { explainError, wholeAnswer } from '../../wire/upstream.ts'
import { urlBelow } from '../../wire/url-below.ts'
import type { InputKind, ModelFacts, OpenAiCompatibleOptions } from './options.ts'

const TIMEOUT_MS = 5_000
/** Vendors list hundreds of models with prices and descriptions. */
const LIST_BYTES = 16 * 1024 * 1024
/** How long a list of models is used. */
const KEPT_MS = 5 * 60_000

/** The facts about a model, found by the longest prefix of its name, with or without the path before it. */
export function factsOf(model: string, { models = {} }: Pick<OpenAiCompatibleOptions, 'models'>): ModelFacts {
  const short = model.slice(model.lastIndexOf('/') + 1)
  const names = Object.keys(models).filter((name) => model.startsWith(name) || short.startsWith(name))
  const [best] = names.sort((a, b) => b.length - a.length)
  return (best === undefined ? undefined : models[best]) ?? {}
}

export function toCapabilities(model: string, facts: ModelFacts, { name, input }: OpenAiCompatibleOptions): Capabilities {
  const kinds = new Set<string>(facts.input ?? input ?? [])
  const { context_window, max_output_tokens, thinking = false, tools = true } = facts
  return {
    id: model,
    provider: name,
    modalities: ['text', ...['image', 'audio', 'file'].filter((kind) => kinds.has(kind))],
    supports_streaming: true,
    supports_thinking: thinking,
    supports_caching: false,
    ...present({ context_window, max_output_tokens }),
    ...(kinds.has('image') && { image: { formats: ['jpeg', 'png', 'webp', 'gif'] } }),
    ...(kinds.has('audio') && { audio: { input_formats: ['wav', 'mp3', 'pcm16'] } }),
    ...(kinds.has('file') && { file: { supports_pdf: true } }),
    tools: { supports_tools: tools, supports_parallel_tools: tools, supports_streaming_tools: tools },
  }
}

/** Facts from the server's own list of models. Servers use different words, and many have no list: that is not an error. */
export class ModelList {
  readonly #options: OpenAiCompatibleOptions
  readonly #headers: Readonly<Record<string, string>>
  #models: Promise<ReadonlyMap<string, ModelFacts>> | undefined
  #askedAt = 0

  constructor(options: OpenAiCompatibleOptions, headers: Readonly<Record<string, string>>) {
    this.#options = options
    this.#headers = headers
  }

  async facts(model: string): Promise<ModelFacts> {
    const { http } = this.#options
    if (!http) return {}
    if (!this.#models || performance.now() - this.#askedAt > KEPT_MS) {
      this.#askedAt = performance.now()
      this.#models = this.#ask(http).catch(() => new Map<string, ModelFacts>())
    }
    return (await this.#models).get(model) ?? {}
  }

  async #ask(http: HttpClient): Promise<ReadonlyMap<string, ModelFacts>> {
    const { name, baseUrl } = this.#options
    const answer = await callUpstream({
      name,
      http,
      request: { url: urlBelow(baseUrl, '/models'), method: 'GET', headers: this.#headers },
      signal: AbortSignal.timeout(TIMEOUT_MS),
      ...shortBounds(LIST_BYTES, TIMEOUT_MS),
      explain: explainError,
      retries: 0,
    })
    const { data } = await wholeAnswer(name, answer.body)
    return new Map(recordsIn(data).flatMap((entry) => (typeof entry['id'] === 'string' ? [[entry['id'], listed(entry)]] : [])))
  }
}

/** Understands OpenRouter, Fireworks, vLLM, Groq and Mistral. */
function listed(entry: Readonly<Record<string, unknown>>): ModelFacts {
  const top = fieldsOf(entry['top_provider'])
  const kinds = fieldsOf(entry['architecture'])['input_modalities']
  const parameters = Array.isArray(entry['supported_parameters']) ? entry['supported_parameters'] : undefined
  const capable = fieldsOf(entry['capabilities'])
  const sees = entry['supports_image_input'] ?? capable['vision']
  const tools = parameters?.includes('tools') ?? entry['supports_tools'] ?? capable['function_calling']
  return present({
    context_window: count(
      entry['context_length'] ?? entry['max_model_len'] ?? entry['context_window'] ?? entry['max_context_length'] ?? top['context_length'],
    ),
    max_output_tokens: count(top['max_completion_tokens'] ?? entry['max_completion_tokens']),
    thinking: parameters?.includes('reasoning'),
    tools: typeof tools === 'boolean' ? tools : undefined,
    input: Array.isArray(kinds) ? inputKinds(kinds) : sees === true ? inputKinds(['image']) : sees === false ? [] : undefined,
  })
}

function inputKinds(kinds: readonly unknown[]): InputKind[] {
  const known = (['image', 'audio', 'file'] as const).filter((kind) => kinds.includes(kind))
  return known.flatMap((kind): InputKind[] => (kind === 'image' ? ['image', 'image_url'] : [kind]))
}

function count(value: unknown): number | undefined {
  return typeof value === 'number' && value > 0 ? value : undefined
}
