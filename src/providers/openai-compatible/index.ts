import type { Provider } from '../../core/ports/provider.ts'
import { present } from '../../wire/fields.ts'
import type { OpenAiCompatibleOptions } from './options.ts'
import { OpenAiCompatible } from './provider.ts'

export type { Dialect, InputKind, ModelFacts, OpenAiCompatibleOptions, ReasoningField } from './options.ts'

/** Any server that speaks OpenAI's Chat Completions. */
export function openaiCompatible(options: OpenAiCompatibleOptions): Provider {
  return new OpenAiCompatible(options)
}

/** UAMP events §8.7: the cache works only if all requests of a session reach the same replica. */
const FIREWORKS: OpenAiCompatibleOptions = {
  name: 'fireworks',
  baseUrl: 'https://api.fireworks.ai/inference/v1',
  reasoningField: 'reasoning_content',
  affinityHeader: 'x-session-affinity',
  input: ['image', 'image_url'],
  settings: ['top_k', 'min_p', 'thinking', 'context_length_exceeded_behavior', 'prompt_truncate_len', 'repetition_penalty'],
}

const DEEPSEEK: OpenAiCompatibleOptions = {
  name: 'deepseek',
  baseUrl: 'https://api.deepseek.com',
  reasoningField: 'reasoning_content',
  input: [],
  // DeepSeek has a field of its own for thoughts.
  thinkTags: false,
  jsonSchema: false,
  settings: ['thinking'],
  thinkingOff: { thinking: { type: 'disabled' } },
  models: {
    'deepseek-v4': { context_window: 1_048_576, thinking: true },
    'deepseek-chat': { context_window: 131_072 },
    'deepseek-reasoner': { context_window: 131_072, thinking: true },
  },
}

/** Ollama fetches no images. */
const OLLAMA: OpenAiCompatibleOptions = {
  name: 'ollama',
  baseUrl: 'http://127.0.0.1:11434/v1',
  reasoningField: 'reasoning',
  input: ['image'],
}

/** Every setting of a preset can be replaced. */
export type PresetOptions = Partial<OpenAiCompatibleOptions>

export function fireworks(options: PresetOptions = {}): Provider {
  return new OpenAiCompatible({ ...FIREWORKS, ...present(options) })
}

export function deepseek(options: PresetOptions = {}): Provider {
  return new OpenAiCompatible({ ...DEEPSEEK, ...present(options) })
}

/** Runs on this machine, and needs no key. */
export function ollama(options: PresetOptions = {}): Provider {
  return new OpenAiCompatible({ ...OLLAMA, ...present(options) })
}
