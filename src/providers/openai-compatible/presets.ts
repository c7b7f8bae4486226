import type { OpenAiCompatibleOptions } from './options.ts'

/** UAMP events §8.7: the cache works only if all requests of a session reach the same replica. */
export const FIREWORKS: OpenAiCompatibleOptions = {
  name: 'fireworks',
  baseUrl: 'https://api.fireworks.ai/inference/v1',
  reasoningField: 'reasoning_content',
  affinityHeader: 'x-session-affinity',
  input: ['image', 'image_url'],
  settings: ['top_k', 'min_p', 'thinking', 'context_length_exceeded_behavior', 'prompt_truncate_len', 'repetition_penalty'],
}

export const DEEPSEEK: OpenAiCompatibleOptions = {
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
export const OLLAMA: OpenAiCompatibleOptions = {
  name: 'ollama',
  baseUrl: 'http://127.0.0.1:11434/v1',
  reasoningField: 'reasoning',
  input: ['image'],
}
