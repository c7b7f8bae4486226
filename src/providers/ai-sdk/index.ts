import type { ModelContext, ModelRequest, Provider } from '../../core/ports/provider.ts'
import type { Capabilities } from '../../protocol/capabilities.ts'
import { UampError } from '../../protocol/errors.ts'
import type { Draft } from '../../protocol/events.ts'
import { answerDrafts, type EventBatch } from '../../upstream/answer-drafts.ts'
import { timesOf, withRetries, type Timeouts, type Tried } from '../../upstream/upstream.ts'
import { toCallOptions } from './call-options.ts'
import { failedAnswer, failedCall, isUnsupported } from './failures.ts'
import { traitsOf, type AiSdkModel, type Metadata, type StreamPart } from './model.ts'
import { readParts, within } from './parts.ts'
import { SHOWN } from './prompt.ts'
import { PartStream } from './stream.ts'

export type { AiSdkModel } from './model.ts'

export interface AiSdkOptions {
  /** Its name in settings, prices and errors. Default: the vendor's, such as `openai`. */
  readonly name?: string
  /** Keys that the SDK sends to the vendor: they are kept out of errors and logs. */
  readonly secrets?: readonly string[]
  /** Options of the vendor, as the SDK documents them: `{ anthropic: { thinking: { type: 'enabled', budgetTokens: 4000 } } }`. */
  readonly providerOptions?: Readonly<Record<string, Readonly<Record<string, unknown>>>>
  /** What the model can do, which the SDK does not tell: `{ context_window: 200_000, supports_thinking: true }`. */
  readonly capabilities?: Partial<Capabilities>
  readonly timeouts?: Partial<Timeouts>
  /** How often a request that may pass is sent again. Default: 2. */
  readonly retries?: number
  readonly newId?: () => string
}

/** A provider with one model, which can be given to `llmAgent` as it is. */
export interface AiSdkProvider extends Provider {
  readonly model: string
  readonly provider: Provider
}

/** Makes a provider of a language model of the AI SDK, so that every vendor of the SDK works: `fromAiSdk(mistral('mistral-large'))`. */
export function fromAiSdk(model: AiSdkModel, options: AiSdkOptions = {}): AiSdkProvider {
  return new AiSdk(model, options)
}

interface CalledBy {
  readonly abortSignal: AbortSignal
  /** They name the request that the model is asked for. */
  readonly headers?: Readonly<Record<string, string>>
}

class AiSdk implements AiSdkProvider {
  readonly name: string
  readonly model: string
  readonly secrets: readonly string[]
  readonly #model: AiSdkModel
  readonly #options: AiSdkOptions
  readonly #traits: ReturnType<typeof traitsOf>

  constructor(model: AiSdkModel, options: AiSdkOptions) {
    const { specificationVersion: version, provider, modelId } = model
    if (version !== 'v2' && version !== 'v3') {
      throw new UampError(
        'invalid_request',
        `The model "${modelId}" has version ${version} of the AI SDK's specification, but v2 or v3 is needed`,
      )
    }
    this.name = options.name ?? provider.split('.')[0] ?? provider
    this.model = modelId
    this.secrets = options.secrets ?? []
    this.#model = model
    this.#options = options
    this.#traits = traitsOf(model)
  }

  get provider(): Provider {
    return this
  }

  capabilities(model: string): Promise<Capabilities> {
    return Promise.resolve({
      id: model,
      provider: this.name,
      modalities: ['text', 'image', 'file'],
      supports_streaming: true,
      supports_thinking: false,
      supports_caching: false,
      tools: { supports_tools: true, supports_parallel_tools: true, supports_streaming_tools: true },
      ...this.#options.capabilities,
    })
  }

  generate(request: ModelRequest, context: ModelContext): AsyncIterable<Draft> {
    const { name } = this
    const { newId = () => crypto.randomUUID() } = this.#options
    const reader = new PartStream({ name, traits: this.#traits, newId, failed: (error) => failedAnswer(name, error) })
    return answerDrafts(() => this.#open(request, context), reader)
  }

  async #open({ model, messages, config }: ModelRequest, { signal, trace }: ModelContext): Promise<AsyncIterable<EventBatch<StreamPart>>> {
    const { name } = this
    if (model !== this.model) throw new UampError('not_found', `${name} has no model "${model}" here, but only "${this.model}"`)
    const leaving = new AbortController()
    const times = timesOf(this.#options.timeouts)
    const call = async (leftMs: number): Promise<Tried<ReadableStream<StreamPart>>> => {
      try {
        const stream = await within(
          Math.min(times.firstByteMs, leftMs),
          this.#call(
            { messages, config },
            { abortSignal: AbortSignal.any([signal, leaving.signal]), ...(trace && { headers: trace.headers }) },
          ),
        )
        if (stream) return { answer: stream }
        leaving.abort()
        return { error: new UampError('timeout', `${name} did not answer within ${times.firstByteMs} ms`), mayPass: false }
      } catch (thrown) {
        signal.throwIfAborted()
        return failedCall(name, thrown)
      }
    }
    const stream = await withRetries(call, { signal, retries: this.#options.retries, ...times })
    return readParts(stream, { name, signal, leaving, times })
  }

  /** A file that the model does not take would fail every turn after it, so that the model is told of it in words instead. */
  async #call(asked: Pick<ModelRequest, 'messages' | 'config'>, by: CalledBy): Promise<ReadableStream<StreamPart>> {
    const urls = (await this.#model.supportedUrls) ?? {}
    const takesSchema = (this.#model as { supportsStructuredOutputs?: unknown }).supportsStructuredOutputs !== false
    const providerOptions: Metadata = this.#options.providerOptions ?? {}
    let unsupported: unknown
    for (const shown of SHOWN) {
      const options = toCallOptions(asked, { name: this.name, traits: this.#traits, urls, shown, takesSchema, providerOptions })
      try {
        const { stream } = await this.#model.doStream({ ...options, ...by } as never)
        return stream as ReadableStream<StreamPart>
      } catch (thrown) {
        if (!isUnsupported(thrown)) throw thrown
        unsupported ??= thrown
      }
    }
    throw unsupported
  }
}
