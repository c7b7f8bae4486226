import { answerDrafts, inOnePiece, type EventBatch } from '../../upstream/answer-drafts.ts'
import type { ModelContext, ModelRequest, Provider } from '../../core/ports/provider.ts'
import { secretsOf } from '../../core/secrets/secrets.ts'
import { askModel } from '../../upstream/upstream.ts'
import type { Capabilities } from '../../protocol/capabilities.ts'
import { UampError } from '../../protocol/errors.ts'
import type { Draft } from '../../protocol/events.ts'
import { settingsFor } from '../../wire/openai/settings.ts'
import { callIds } from '../../wire/steps.ts'
import { hashed } from '../../wire/upstream.ts'
import { urlBelow } from '../../wire/url-below.ts'
import { factsOf, ModelList, toCapabilities } from './capabilities.ts'
import type { OpenAiCompatibleOptions, ReasoningField } from './options.ts'
import { modelOf, toBody } from './request.ts'
import { ChatStream } from './stream.ts'

type Answer = AsyncIterable<EventBatch<string | Readonly<Record<string, unknown>>>>

/** The most models whose way to answer is remembered. */
const REMEMBERED = 256

/** A server that speaks OpenAI's Chat Completions. */
export class OpenAiCompatible implements Provider {
  readonly name: string
  readonly secrets: readonly string[]
  readonly listing: { readonly url: string; readonly headers: Readonly<Record<string, string>> }
  readonly #options: OpenAiCompatibleOptions
  readonly #headers: Readonly<Record<string, string>>
  readonly #list: ModelList
  /** The field in which each model sent thoughts, and wants them back. */
  readonly #fields = new Map<string, ReasoningField>()
  /** Models that refused to answer in one piece. */
  readonly #streaming = new Set<string>()

  constructor(options: OpenAiCompatibleOptions) {
    const { name, apiKey, headers, baseUrl } = options
    this.name = name
    this.secrets = secretsOf({ values: [apiKey], headers, urls: [baseUrl] })
    this.#options = options
    this.#headers = { ...(apiKey !== undefined && apiKey !== '' && { authorization: `Bearer ${apiKey}` }), ...headers }
    this.#list = new ModelList(this.#options, this.#headers)
    this.listing = { url: urlBelow(baseUrl, '/models'), headers: this.#headers }
  }

  async capabilities(model: string): Promise<Capabilities> {
    return toCapabilities(model, { ...factsOf(model, this.#options), ...(await this.#list.facts(model)) }, this.#options)
  }

  generate(request: ModelRequest, context: ModelContext): AsyncIterable<Draft> {
    const { name, thinkTags = true, newId = () => crypto.randomUUID() } = this.#options
    const model = modelOf(request, name)
    const onReasoning = (field: ReasoningField): void => this.#learn(model, field)
    const reader = new ChatStream({ name, thinkTags, taken: callIds(request.messages), newId, onReasoning })
    return answerDrafts(() => this.#open({ model, messages: request.messages, config: request.config }, context), reader)
  }

  /** Asks for one piece if nobody sees the pieces. Some servers refuse that for some models, which are then asked for a stream. */
  async #open(request: ModelRequest, context: ModelContext): Promise<Answer> {
    const { model } = request
    // A bound on the first byte is meant for a stream.
    const bounded = this.#options.timeouts?.firstByteMs !== undefined
    if (!context.silent || bounded || this.#streaming.has(model)) return this.#ask(request, context, false)
    try {
      return await this.#ask(request, context, true)
    } catch (thrown) {
      if (!(thrown instanceof UampError) || thrown.code !== 'invalid_request' || !/stream/i.test(thrown.message)) throw thrown
      if (this.#streaming.size >= REMEMBERED) this.#streaming.clear()
      this.#streaming.add(model)
      return this.#ask(request, context, false)
    }
  }

  async #ask(request: ModelRequest, context: ModelContext, whole: boolean): Promise<Answer> {
    const { name, timeouts, retries, once, baseUrl } = this.#options
    const body = toBody(request, this.#options, { learned: this.#fields.get(request.model), whole })
    const { affinityHeader } = this.#options
    const headers = affinityHeader === undefined ? this.#headers : await this.#withAffinity(affinityHeader, request, context.sessionId)
    return askModel(
      { name, url: urlBelow(baseUrl, '/chat/completions'), headers, body, timeouts, retries, once, whole },
      context,
      inOnePiece,
    )
  }

  /** Clients that send the whole conversation open a new session each time, but may name a key that stays. */
  async #withAffinity(header: string, { config }: ModelRequest, sessionId: string): Promise<Record<string, string>> {
    return { ...this.#headers, [header]: await hashed(settingsFor(config, this.name).prompt_cache_key ?? sessionId) }
  }

  #learn(model: string, field: ReasoningField): void {
    if (this.#fields.get(model) === field) return
    if (this.#fields.size >= REMEMBERED) this.#fields.clear()
    this.#fields.set(model, field)
  }
}
