import type { Capabilities } from '../../protocol/capabilities.ts'
import { present } from '../../wire/fields.ts'

/** Facts about a model. One entry may stand for all names that begin like its own. */
export interface ModelFacts {
  readonly context_window?: number
  readonly max_output_tokens?: number
  /** It thinks: its thoughts are kept, and it refuses a temperature while it does. */
  readonly reasoning?: boolean
  readonly image?: boolean
}

const THINKS = { reasoning: true, image: true } as const
const WIDE = { context_window: 1_050_000, max_output_tokens: 128_000, ...THINKS }
const FIVE = { context_window: 400_000, max_output_tokens: 128_000, ...THINKS }
const CHAT = { context_window: 128_000, max_output_tokens: 16_384, image: true }
const O = { context_window: 200_000, max_output_tokens: 100_000, ...THINKS }

/** The longest prefix wins. */
const MODELS: Readonly<Record<string, ModelFacts>> = {
  'gpt-5': FIVE,
  'gpt-5.4': WIDE,
  'gpt-5.4-mini': FIVE,
  'gpt-5.4-nano': FIVE,
  'gpt-5.5': WIDE,
  'gpt-5-chat': CHAT,
  'gpt-5.1-chat': CHAT,
  'gpt-5.2-chat': CHAT,
  'gpt-5.3-chat': CHAT,
  'gpt-4.1': { context_window: 1_047_576, max_output_tokens: 32_768, image: true },
  'gpt-4o': CHAT,
  'chatgpt-4o': CHAT,
  'gpt-4-turbo': { context_window: 128_000, max_output_tokens: 4_096, image: true },
  'gpt-3.5-turbo': { context_window: 16_385, max_output_tokens: 4_096 },
  o1: O,
  o3: O,
  'o3-mini': { ...O, image: false },
  'o4-mini': O,
  codex: { ...FIVE },
}

/** Newer generations are expected to think and see. */
const NEXT = /^gpt-([6-9]|\d\d)/

export function factsOf(model: string, more: Readonly<Record<string, ModelFacts>> = {}): ModelFacts {
  // A fine-tuned model has its base in its name: `ft:gpt-4.1:org::id`.
  const name = model.replace(/^ft:/, '')
  const table = { ...MODELS, ...more }
  const [best] = Object.keys(table)
    .filter((known) => name.startsWith(known))
    .sort((a, b) => b.length - a.length)
  if (best !== undefined) return table[best] ?? {}
  return NEXT.test(name) ? THINKS : {}
}

export function toCapabilities(model: string, { context_window, max_output_tokens, reasoning, image }: ModelFacts): Capabilities {
  return {
    id: model,
    provider: 'openai',
    modalities: ['text', ...(image ? ['image', 'file'] : [])],
    supports_streaming: true,
    supports_thinking: reasoning ?? false,
    supports_caching: true,
    ...present({ context_window, max_output_tokens }),
    ...(image && {
      image: { formats: ['jpeg', 'png', 'webp', 'gif'], detail_levels: ['low', 'high', 'auto'] },
      file: { supports_pdf: true },
    }),
    tools: { supports_tools: true, supports_parallel_tools: true, supports_streaming_tools: true },
  }
}
