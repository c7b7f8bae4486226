import type { ModelFacts, ModelTable, Price } from '../../core/ports/models.ts'
import type { Capabilities } from '../../protocol/capabilities.ts'
import { modelId, type Model } from './model.ts'
import { MODELS, rowOf, type PriceTable } from './prices.ts'

type Limits = Pick<Capabilities, 'context_window' | 'max_output_tokens'>

/** What an agent knows of models. Its own prices come first, then what its server knows, which is newer than the built-in table. */
export class KnownModels {
  readonly #own: PriceTable
  #served: ModelTable = {}

  constructor(own: PriceTable = {}) {
    this.#own = own
  }

  /** Takes over what the server knows. */
  learn(models: ModelTable = {}): void {
    this.#served = models
  }

  /** The price of a `provider/model`. */
  price(name: string): Price | undefined {
    return rowOf(name, this.#own) ?? this.#facts(name)
  }

  /** What the provider says of a model, and the limits that it did not tell. */
  limited<C extends Partial<Capabilities> | undefined>(able: C, of: Model): C | (C & Limits) {
    const { contextWindow, maxOutput } = this.#facts(modelId(of)) ?? {}
    const context = of.contextWindow ?? able?.context_window ?? contextWindow
    const output = able?.max_output_tokens ?? maxOutput
    if (context === able?.context_window && output === able?.max_output_tokens) return able
    return {
      ...able,
      ...(context !== undefined && { context_window: context }),
      ...(output !== undefined && { max_output_tokens: output }),
    }
  }

  /** For clients that choose among models. */
  told(of: Model): Limits & { readonly id: string; readonly price?: Price } {
    const id = modelId(of)
    const price = of.price ?? this.price(id)
    const { input = 0, output = 0, cacheRead, cacheWrite } = price ?? {}
    return { id, ...this.limited({}, of), ...(price && { price: { input, output, cacheRead, cacheWrite } }) }
  }

  #facts(name: string): ModelFacts | undefined {
    return rowOf(name, this.#served) ?? rowOf(name, MODELS)
  }
}
