import type { Capabilities } from '../../protocol/capabilities.ts'

/** How Claude models differ from each other, and from other models behind the same API. */
export interface Traits {
  readonly claude: boolean
  /** Takes temperature, top_p and top_k, under the API version that has them. */
  readonly samples: boolean
  /** How a request asks for thoughts: not at all, by a budget of tokens, or by an effort. */
  readonly thinking: 'none' | 'budget' | 'adaptive'
  /** Refuses a request not to think. */
  readonly alwaysThinks: boolean
  /** Has an effort between `high` and `max`. */
  readonly xhigh: boolean
  /** Knows `output_config.format`. */
  readonly schema: boolean
  readonly context: number
  readonly output: number
}

/** By version (major × 100 + minor), newest first. */
const GENERATIONS = [
  { from: 500, context: 1_000_000, output: 128_000 },
  { from: 406, context: 1_000_000, output: 64_000 },
  { from: 405, context: 200_000, output: 64_000 },
  { from: 400, context: 200_000, output: 32_000 },
  { from: 307, context: 200_000, output: 64_000 },
  { from: 305, context: 200_000, output: 8_192 },
  { from: 0, context: 200_000, output: 4_096 },
]

/** `claude-sonnet-5-5`, `claude-3-7-sonnet-20250219`, `anthropic.claude-opus-4-6-v1`: a date is not a version. */
const NAME = /claude-(?:(\d)(?:-(\d{1,2}))?-)?([a-z]+)(?:-(\d{1,2})(?!\d)(?:-(\d{1,2})(?!\d))?)?/

/** For models without a number in their name, which came out between 4.6 and 4.8. */
const UNNUMBERED = 407

export function traitsOf(model: string): Traits {
  const [name, oldMajor, oldMinor, family = '', major = oldMajor, minor = oldMinor] = NAME.exec(model) ?? []
  const claude = name !== undefined
  const version = major === undefined ? UNNUMBERED : Number(major) * 100 + Number(minor ?? 0)
  const { context, output } = GENERATIONS.find(({ from }) => version >= from) ?? { context: 200_000, output: 4_096 }
  return {
    claude,
    samples: !claude || version < 407,
    thinking: !claude || version < 307 ? 'none' : version < 406 ? 'budget' : 'adaptive',
    alwaysThinks: family === 'fable' || family === 'mythos' || (family === 'opus' && version >= 505),
    xhigh: version >= 407,
    schema: claude && version >= 405,
    context,
    output: family === 'opus' && version >= 406 ? 128_000 : output,
  }
}

export function capabilitiesOf(model: string): Capabilities {
  const { claude, thinking, context, output } = traitsOf(model)
  return {
    id: model,
    provider: 'anthropic',
    modalities: ['text', 'image', 'file'],
    supports_streaming: true,
    supports_thinking: thinking !== 'none',
    supports_caching: claude,
    ...(claude && { context_window: context, max_output_tokens: output }),
    image: { formats: ['jpeg', 'png', 'gif', 'webp'], max_size_bytes: 5 * 1024 * 1024, max_images_per_request: 100 },
    file: { supported_mime_types: ['application/pdf', 'text/plain'], supports_pdf: true },
    tools: { supports_tools: true, supports_parallel_tools: true, supports_streaming_tools: true },
  }
}
