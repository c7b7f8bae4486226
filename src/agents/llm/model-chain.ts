import { tokensOfConfig } from '../../core/basics/tokens.ts'
import type { Price } from '../../core/ports/models.ts'
import type { ModelContext } from '../../core/ports/provider.ts'
import type { Logger } from '../../core/ports/transport.ts'
import type { Capabilities } from '../../protocol/capabilities.ts'
import { UampError } from '../../protocol/errors.ts'
import type { Draft } from '../../protocol/events.ts'
import type { Message } from '../../protocol/message.ts'
import type { SessionConfig } from '../../protocol/session-config.ts'
import { hasHostedTool, hostedToolsIn } from '../../core/agent-kit/hosted-tools.ts'
import { maxTokensIn, modelId, withFreeChoice, withSettings, type Model } from './model.ts'
import { fitting } from './context.ts'
import { costOf } from './prices.ts'

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
    const { redact = (text) => text } = context
    const spent: Draft[] = []
    for (;;) {
      const model = models[this.#index] as Model
      const said: Draft[] = []
      try {
        const rest = await this.#ask(model, { messages, config, first, context })
        const began = await untilWord(rest, said)
        const priced = [...spent, ...said.map((draft) => this.marked(this.priced(draft, model), model))]
        return { model, first: priced, rest: began ? rest : ended() }
      } catch (thrown) {
        context.signal.throwIfAborted()
        if (this.#index + 1 >= models.length) throw thrown
        const next = models[++this.#index] as Model
        spent.push(...said.map((draft) => this.priced(draft, model)))
        log('warn', 'A model failed, the next one is asked', {
          model: model.model,
          next: next.model,
          error: redact(UampError.from(thrown).message),
        })
      }
    }
  }

  /** Adds the cost to usage, or that nobody knows it. Other drafts pass unchanged. */
  priced(draft: Draft, model: Model): Draft {
    if (draft.type !== 'usage.delta' || draft.delta.cost) return draft
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
    log('info', 'The price of a model is not known, so its usage has no cost: give it a price', { model })
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
    const { signal, http, sessionId, redact } = context
    const asked = model === this.#models.at(-1) ? context : { signal, http, sessionId, redact, silent: false }
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
