import { answerDrafts, inOnePiece, type EventBatch } from '../../upstream/answer-drafts.ts'
import type { ModelContext, ModelRequest, Provider } from '../../core/ports/provider.ts'
import { secretsOf } from '../../core/secrets/secrets.ts'
import { upstreamEvents } from '../../upstream/upstream-events.ts'
import { callUpstream, streamBounds, wholeBounds } from '../../upstream/upstream.ts'
import type { Capabilities } from '../../protocol/capabilities.ts'
import { UampError } from '../../protocol/errors.ts'
import type { Draft } from '../../protocol/events.ts'
import { settingsFor } from '../../wire/openai/settings.ts'
import { callIds } from '../../wire/steps.ts'
import { explainError, hashed, isStream, wholeAnswer } from '../../wire/upstream.ts'
import { sseParser } from '../../wire/sse-parse.ts'
import { factsOf, ModelList, toCapabilities } from './capabilities.ts'
import type { OpenAiCompatibleOptions, ReasoningField } from './options.ts'
import { modelOf, toBody } from './request.ts'
import { ChatStream } from './stream.ts'

type Answer = AsyncIterable<EventBatch<string | Readonly<Record<string, unknown>>>>

/** Models of which it is remembered how they answer. */
const REMEMBERED = 256

/** A server that speaks OpenAI's Chat Completions. */
export class OpenAiCompatible implements Provider {
  readonly name: string
  readonly secrets: readonly string[]
  readonly #options: OpenAiCompatibleOptions
  readonly #headers: Readonly<Record<string, string>>
  readonly #list: ModelList
  /** Thoughts go back in the field in which they came. */
  readonly #fields = new Map<string, ReasoningField>()
  /** Models that refused to answer in one piece. */
  readonly #streaming = new Set<string>()

  constructor({ baseUrl, ...options }: OpenAiCompatibleOptions) {
    const { name, apiKey, headers } = options
    this.name = name
    this.secrets = secretsOf({ values: [apiKey], headers, urls: [baseUrl] })
    this.#options = { ...options, baseUrl: baseUrl.replace(/\/+$/, '') }
    this.#headers = { ...(apiKey !== undefined && apiKey !== '' && { authorization: `Bearer ${apiKey}` }), ...headers }
    this.#list = new ModelList(this.#options, this.#headers)
  }

  async capabilities(model: string): Promise<Capabilities> {
    return toCapabilities(model, { ...factsOf(model, this.#options), ...(await this.#list.facts(model)) }, this.#options)
  }

  generate(request: ModelRequest, context: ModelContext): AsyncIterable<Draft> {
    const { name, thinkTags = true, newId = () => crypto.randomUUID() } = this.#options
    const model = modelOf(request, name)
    const onReasoning = (field: ReasoningField): void => this.#learn(model, field)
    const reader = new ChatStream({ name, thinkTags, taken: callIds(request.messages), newId, onReasoning })
    return answerDrafts(() => this.#open({ ...request, model }, context), reader)
  }

  /** In one piece where nobody would see the pieces. Some servers refuse that for some models: those are asked for a stream. */
  async #open(request: ModelRequest, context: ModelContext): Promise<Answer> {
    const { model } = request
    // Who bounds the wait for the first byte means that of a stream.
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

  async #ask(request: ModelRequest, { http, signal, sessionId }: ModelContext, whole: boolean): Promise<Answer> {
    const { name, timeouts, retries, once, baseUrl } = this.#options
    const body = JSON.stringify(toBody(request, this.#options, { learned: this.#fields.get(request.model), whole }))
    const headers = { 'content-type': 'application/json', ...this.#headers, ...(await this.#affinity(request, sessionId)) }
    const answer = await callUpstream({
      name,
      http,
      request: { url: `${baseUrl}/chat/completions`, method: 'POST', headers, body },
      signal,
      explain: explainError,
      ...(whole ? wholeBounds(timeouts) : streamBounds(timeouts)),
      retries,
      once,
    })
    if (isStream(answer.headers, whole)) return upstreamEvents(answer.body, { name, parse: sseParser() })
    return inOnePiece(await wholeAnswer(name, answer.body))
  }

  /** Clients that send the whole conversation have a new session every time, but may say what belongs together. */
  async #affinity({ config }: ModelRequest, sessionId: string): Promise<Record<string, string>> {
    const { name, affinityHeader } = this.#options
    if (affinityHeader === undefined) return {}
    return { [affinityHeader]: await hashed(settingsFor(config, name).prompt_cache_key ?? sessionId) }
  }

  #learn(model: string, field: ReasoningField): void {
    if (this.#fields.get(model) === field) return
    if (this.#fields.size >= REMEMBERED) this.#fields.clear()
    this.#fields.set(model, field)
  }
}
