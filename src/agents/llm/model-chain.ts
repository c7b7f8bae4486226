import { tokensOfConfig } from '../../core/basics/tokens.ts'
import { usageAttributes } from '../../core/basics/work.ts'
import type { Price } from '../../core/ports/models.ts'
import type { ModelContext } from '../../core/ports/provider.ts'
import type { Span, Trace } from '../../core/ports/trace.ts'
import type { Logger } from '../../core/ports/transport.ts'
import type { Capabilities } from '../../protocol/capabilities.ts'
import { UampError } from '../../protocol/errors.ts'
import type { Draft } from '../../protocol/events.ts'
import type { Message } from '../../protocol/message.ts'
import type { SessionConfig } from '../../protocol/session-config.ts'
import { addUsage, type Usage } from '../../protocol/usage.ts'
import { hasHostedTool, hostedToolsIn } from '../../core/agent-kit/hosted-tools.ts'
import { maxTokensIn, modelId, withFreeChoice, withSettings, type Model } from './model.ts'
import { fitting } from './context.ts'
import { costOf } from './prices.ts'

type UsageDraft = Extract<Draft, { type: 'usage.delta' }>

/** The part of a window that is left for the answer if nobody says how long it may be. */
const ANSWER_SHARE = 0.25
const ANSWER_TOKENS = 8192
/** The most usage drafts before the first word. With more, the answer counts as begun. */
const SILENT = 16
/** The most models that the log names: clients may choose names. */
const UNPRICED = 64

interface Asked {
  readonly messages: readonly Message[]
  readonly config: SessionConfig
  readonly first: boolean
  readonly context: ModelContext
}

/** An answer that has begun: its drafts up to the first word, and the source of the rest. */
export interface Answer {
  readonly model: Model
  readonly first: readonly Draft[]
  readonly rest: AsyncIterator<Draft>
  /** Call it when the answer has been read to its end, or left. */
  over(failure?: unknown): void
}

export interface ChainOptions {
  readonly models: readonly Model[]
  /** The price of a `provider/model`, if it is known. */
  readonly priceOf: (name: string) => Price | undefined
  /** Models without a known price that the log has named. */
  readonly unpriced: Set<string>
  readonly log: Logger
  /** What its provider says of a model, if that is known. */
  readonly capabilitiesOf: (model: Model) => Promise<Capabilities | undefined>
  /** What the agent can do with this model. */
  readonly describe: (model: Model) => Promise<Capabilities>
}

/** The models of one turn. If one fails before it has said anything, the next one is asked. */
export class ModelChain {
  readonly #options: ChainOptions
  readonly #models: readonly Model[]
  /** Stays with the model that answered: the one before would fail again, and cannot read this one's thoughts. */
  #index = 0
  /** What the answer that is being read has used. */
  #used: Usage | undefined
  #trace: Trace | undefined

  constructor(options: ChainOptions, models: readonly Model[]) {
    this.#options = options
    this.#models = models
  }

  async open(
    messages: readonly Message[],
    config: SessionConfig,
    { context, first }: { context: ModelContext; first: boolean },
  ): Promise<Answer> {
    const { log } = this.#options
    const models = this.#models
    this.#trace = context.trace
    const { redact = (text) => text } = context
    const spent: Draft[] = []
    for (;;) {
      const model = models[this.#index] as Model
      const said: Draft[] = []
      const span = this.#begin(model, context)
      this.#used = undefined
      const over = (failure?: unknown): void => {
        if (this.#used) span?.set(usageAttributes(this.#used))
        span?.end(failure === undefined ? undefined : UampError.from(failure).code)
      }
      try {
        const rest = await this.#ask(model, { messages, config, first, context: span ? within(span, context) : context })
        const began = await untilWord(rest, said)
        const priced = [...spent, ...said.map((draft) => this.marked(this.priced(draft, model), model))]
        return { model, first: priced, rest: began ? rest : ended(), over }
      } catch (thrown) {
        const lost = said.map((draft) => this.priced(draft, model))
        over(thrown)
        context.signal.throwIfAborted()
        if (this.#index + 1 >= models.length) throw thrown
        const next = models[++this.#index] as Model
        spent.push(...lost)
        log('warn', 'A model failed, the next one is asked', {
          model: model.model,
          next: next.model,
          error: redact(UampError.from(thrown).message),
          ...context.trace?.fields,
        })
      }
    }
  }

  /** Adds the cost to usage, or that nobody knows it. Other drafts pass unchanged. */
  priced(draft: Draft, model: Model): Draft {
    if (draft.type !== 'usage.delta') return draft
    const priced = draft.delta.cost ? draft : this.#withCost(draft, model)
    this.#used = addUsage(this.#used, priced.delta)
    return priced
  }

  #withCost(draft: UsageDraft, model: Model): UsageDraft {
    const id = modelId(model)
    const price = model.price ?? this.#options.priceOf(id)
    if (price) return { ...draft, delta: { ...draft.delta, cost: costOf(draft.delta, price) } }
    this.#unpriced(id)
    return { ...draft, extensions: { uamp: { unpriced: true } } }
  }

  #unpriced(model: string): void {
    const { unpriced, log } = this.#options
    if (unpriced.has(model) || unpriced.size >= UNPRICED) return
    unpriced.add(model)
    const message = 'The price of a model is not known, so its usage has no cost: give it a price'
    log('info', message, { model, ...this.#trace?.fields })
  }

  #begin({ provider, model }: Model, { trace }: ModelContext): Span | undefined {
    return trace?.begin('chat', `chat ${model}`, {
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': provider.name,
      'gen_ai.request.model': model,
    })
  }

  /** Names the model in the signature of its thought, if the agent has several: only that model may see it again. */
  marked(draft: Draft, model: Model): Draft {
    if (draft.type !== 'thinking' || draft.signature === undefined || this.#models.length === 1) return draft
    return { ...draft, signature: markOf(model) + draft.signature }
  }

  async #ask(model: Model, { messages, config: given, first, context }: Asked): Promise<AsyncIterator<Draft>> {
    const { name } = model.provider
    const settled = withSettings(given, model)
    const config = first ? settled : withFreeChoice(settled, name)
    const able = await this.#options.capabilitiesOf(model)
    for (const { type } of hostedToolsIn(given)) {
      if (!hasHostedTool(able, String(type))) throw lacking(model, String(type))
    }
    const window = model.contextWindow ?? able?.context_window
    // An answer in one piece may take as long as the whole. A model that hangs shows itself sooner in a stream.
    const { signal, http, sessionId, redact, trace } = context
    const asked = model === this.#models.at(-1) ? context : { signal, http, sessionId, redact, trace, silent: false }
    const told = this.#models.length === 1 ? messages : messages.map((message) => withOwnThoughts(message, markOf(model)))
    return model.provider
      .generate(
        {
          model: model.model,
          messages: window === undefined ? told : fitting(told, room(window, config, name)),
          config,
        },
        asked,
      )
      [Symbol.asyncIterator]()
  }
}

/** The calls of the provider are within the span. */
function within(span: Span, { signal, http, sessionId, redact, silent }: ModelContext): ModelContext {
  return { signal, http: { ...http, trace: span }, sessionId, redact, silent, trace: span }
}

function lacking({ model }: Model, type: string): UampError {
  const details = { param: 'tools', code: 'unsupported_value' }
  return new UampError('invalid_request', `The model "${model}" has no tool of the type "${type}"`, { details })
}

/** Tokens of the window that are left for the conversation. */
function room(window: number, config: SessionConfig, provider: string): number {
  const answer = maxTokensIn(config, provider) ?? Math.min(ANSWER_TOKENS, window * ANSWER_SHARE)
  return Math.max(0, window - Math.min(answer, window / 2) - tokensOfConfig(config))
}

/** Reads up to the first draft that a client sees; false if there is none. */
async function untilWord(drafts: AsyncIterator<Draft>, said: Draft[]): Promise<boolean> {
  for (;;) {
    const step = await drafts.next()
    if (step.done) return false
    said.push(step.value)
    if (step.value.type !== 'usage.delta' || said.length >= SILENT) return true
  }
}

async function* ended(): AsyncGenerator<Draft, void> {}

function markOf(model: Model): string {
  return `${modelId(model)}|`
}

/** Without the thoughts that other models signed, which no provider takes. */
function withOwnThoughts(message: Message, mark: string): Message {
  const { content_items } = message
  if (!content_items?.some(({ type }) => type === 'thinking')) return message
  const items = content_items.flatMap((item) => {
    if (item.type !== 'thinking' || item.signature === undefined) return [item]
    return item.signature.startsWith(mark) ? [{ ...item, signature: item.signature.slice(mark.length) }] : []
  })
  return { ...message, content_items: items }
}
