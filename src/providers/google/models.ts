import type { Capabilities } from '../../protocol/capabilities.ts'

/** How Gemini models differ. */
export interface Traits {
  /** How a request says how much to think: not at all, by a budget of tokens, or by a level. */
  readonly thinking: 'none' | 'budget' | 'level'
  /** Always thinks, and has fewer levels. */
  readonly pro: boolean
  /** Since Gemini 3, calls need their signatures, results may hold media, and JSON and tools go together. */
  readonly third: boolean
  readonly context: number
  readonly output: number
}

/** By version (major × 100 + minor), newest first. */
const GENERATIONS = [
  { from: 300, thinking: 'level', context: 1_048_576, output: 65_536 },
  { from: 205, thinking: 'budget', context: 1_048_576, output: 65_536 },
  { from: 0, thinking: 'none', context: 1_048_576, output: 8_192 },
] as const

/** `gemini-3.5-flash`, `gemini-2.5-pro`; `gemini-flash-latest` has no number, and is the newest. */
const NAME = /gemini-(?:(\d+)(?:\.(\d+))?|[a-z]+(?:-[a-z]+)*-latest)/

export function traitsOf(model: string): Traits {
  const [name, major, minor = '0'] = NAME.exec(model) ?? []
  const version = name === undefined ? 0 : major === undefined ? 300 : Number(major) * 100 + Number(minor)
  const { thinking, context, output } = GENERATIONS.find(({ from }) => version >= from) ?? GENERATIONS[2]
  // Models that draw or speak refuse the setting.
  const silent = /-(image|tts|live)/.test(model)
  return { thinking: silent ? 'none' : thinking, pro: model.includes('-pro'), third: version >= 300, context, output }
}

export function capabilitiesOf(model: string): Capabilities {
  const { thinking, context, output } = traitsOf(model)
  const known = NAME.test(model)
  return {
    id: model,
    provider: 'google',
    modalities: ['text', 'image', 'audio', 'video', 'file'],
    supports_streaming: true,
    supports_thinking: thinking !== 'none',
    supports_caching: thinking !== 'none',
    ...(known && { context_window: context, max_output_tokens: output }),
    image: { formats: ['jpeg', 'png', 'webp', 'heic', 'heif'], max_images_per_request: 900 },
    audio: { input_formats: ['wav', 'mp3', 'aac', 'ogg', 'flac', 'pcm16'] },
    file: { supported_mime_types: ['application/pdf', 'text/plain'], supports_pdf: true },
    // Calls come in one piece.
    tools: { supports_tools: true, supports_parallel_tools: true, supports_streaming_tools: false },
  }
}
