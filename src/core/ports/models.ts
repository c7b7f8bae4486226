/** US dollars for a million tokens. Without a price of their own, cached tokens cost the same as input (UAMP events §8.7). */
export interface Price {
  readonly input: number
  readonly output: number
  readonly cacheRead?: number | undefined
  readonly cacheWrite?: number | undefined
}

/** What is known of a model: its price, and the most tokens of a request with its answer, and of the answer alone. */
export interface ModelFacts extends Price {
  readonly contextWindow?: number | undefined
  readonly maxOutput?: number | undefined
}

/** By `provider/model`. A name also covers its dated versions: `openai/gpt-5` covers `openai/gpt-5-2025-08-07`. */
export type ModelTable = Readonly<Record<string, ModelFacts>>
