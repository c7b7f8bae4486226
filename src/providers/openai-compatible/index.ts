import type { Provider } from '../../core/ports/provider.ts'
import { present } from '../../wire/fields.ts'
import type { OpenAiCompatibleOptions } from './options.ts'
import { DEEPSEEK, FIREWORKS, OLLAMA } from './presets.ts'
import { OpenAiCompatible } from './provider.ts'

export type { Dialect, InputKind, ModelFacts, OpenAiCompatibleOptions, ReasoningField } from './options.ts'

/** Any server that speaks OpenAI's Chat Completions. */
export function openaiCompatible(options: OpenAiCompatibleOptions): Provider {
  return new OpenAiCompatible(options)
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
