import type { ModelContext } from '../../core/ports/provider.ts'
import type { Logger } from '../../core/ports/transport.ts'
import type { Capabilities } from '../../protocol/capabilities.ts'
import { UampError } from '../../protocol/errors.ts'
import type { Draft } from '../../protocol/events.ts'
import type { Message } from '../../protocol/message.ts'
import type { SessionConfig } from '../../protocol/session-config.ts'
import { maxTokensIn, modelIn, withFreeChoice, withSettings, type Model } from './model.ts'
import { fitting, tokensOfConfig } from './context.ts'
import { costOf, priceOf, type PriceTable } from './prices.ts'

/** The part of a window that is left for the answer if nobody says how long it may be. */
const ANSWER_SHARE = 0.25
const ANSWER_TOKENS = 8192
/** The most usage drafts before the first word. With more, the answer counts as begun. */
const SILENT = 16

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
}

export interface ChainOptions {
  readonly models: readonly Model[]
  readonly prices: PriceTable
  readonly log: Logger
  /** Tokens that fit into a request to this model, if known. */
  readonly windowOf: (model: Model) => Promise<number | undefined>
  /** What the agent can do with this model. */
  readonly describe: (model: Model) => Promise<Capabilities>
}

/** The models of one turn. If one fails before it has said anything, the next one is asked. */
export class ModelChain {
  readonly #options: ChainOptions
  readonly #models: readonly Model[]
  readonly #transport: string | undefined
  /** Stays with the model that answered: the one before would fail again, and cannot read this one's thoughts. */
  #index = 0

  constructor(options: ChainOptions, models: readonly Model[], transport: string | undefined) {
    this.#options = options
    this.#models = models
    this.#transport = transport
  }

  async open(
    messages: readonly Message[],
    config: SessionConfig,
    { context, first }: { context: ModelContext; first: boolean },
  ): Promise<Answer> {
    const { log } = this.#options
    const models = this.#models
    const { redact = (text) => text } = context
    const spent: Draft[] = []
    for (;;) {
      const model = models[this.#index] as Model
      const said: Draft[] = []
      try {
        const rest = await this.#ask(model, { messages, config, first, context })
        const began = await untilWord(rest, said)
        const priced = [...spent, ...said.map((draft) => this.priced(draft, model, config))]
        return { model, first: priced, rest: began ? rest : ended() }
      } catch (thrown) {
        context.signal.throwIfAborted()
        if (this.#index + 1 >= models.length) throw thrown
        const next = models[++this.#index] as Model
        spent.push(...said.map((draft) => this.priced(draft, model, config)))
        log('warn', 'A model failed, the next one is asked', {
          model: model.model,
          next: next.model,
          error: redact(UampError.from(thrown).message),
        })
      }
    }
  }

  /** Adds the cost to usage. Other drafts pass unchanged. */
  priced(draft: Draft, model: Model, config: SessionConfig): Draft {
    if (draft.type !== 'usage.delta' || draft.delta.cost) return draft
    const { name } = model.provider
    const price = model.price ?? priceOf(name, modelIn({ model: model.model, config }, name, this.#transport), this.#options.prices)
    return price ? { ...draft, delta: { ...draft.delta, cost: costOf(draft.delta, price) } } : draft
  }

  async #ask(model: Model, { messages, config: given, first, context }: Asked): Promise<AsyncIterator<Draft>> {
    const { name } = model.provider
    const settled = withSettings(given, model)
    const config = first ? settled : withFreeChoice(settled, name)
    const window = await this.#options.windowOf(model)
    const told = name === this.#models[0]?.provider.name ? messages : messages.map(withoutThinking)
    return model.provider
      .generate(
        {
          model: modelIn({ model: model.model, config }, name, this.#transport),
          messages: window === undefined ? told : fitting(told, room(window, config, name)),
          config,
        },
        context,
      )
      [Symbol.asyncIterator]()
  }
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

/** Providers refuse thoughts that another one signed. */
function withoutThinking(message: Message): Message {
  const { content_items } = message
  if (!content_items?.some(({ type }) => type === 'thinking')) return message
  return { ...message, content_items: content_items.filter(({ type }) => type !== 'thinking') }
}
