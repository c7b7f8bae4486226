import type { Timeouts } from '../core/ports/http.ts'
import type { Provider } from '../core/ports/provider.ts'
import { PROVIDER_TYPES, type ProviderType } from './schema.ts'

export interface ProviderOptions {
  readonly name: string
  readonly apiKey?: string
  readonly baseUrl?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly retries?: number
  readonly timeouts?: Partial<Timeouts>
}

export interface ProviderKind {
  /** Environment variables for its key, the preferred one first; none if it needs no key. */
  readonly keys: readonly string[]
  /** The environment variable in which its own clients find another address. */
  readonly address?: string
  /** The model that `uamp init` suggests, and that is served if there is a key but no config. */
  readonly model: string | undefined
  /** Loads the provider only when it is used. */
  create(options: ProviderOptions): Promise<Provider>
}

const compatible = () => import('../providers/openai-compatible/index.ts')
/** `Models` has refused a missing key before. */
const withKey = <T extends ProviderOptions>(options: T) => ({ ...options, apiKey: options.apiKey ?? '' })

export const PROVIDERS = {
  openai: {
    keys: ['OPENAI_API_KEY'],
    address: 'OPENAI_BASE_URL',
    model: 'gpt-5-mini',
    create: async (options) => (await import('../providers/openai/index.ts')).openai(withKey(options)),
  },
  anthropic: {
    keys: ['ANTHROPIC_API_KEY'],
    address: 'ANTHROPIC_BASE_URL',
    model: 'claude-sonnet-4-5',
    create: async (options) => (await import('../providers/anthropic/index.ts')).anthropic(withKey(options)),
  },
  google: {
    keys: ['GEMINI_API_KEY', 'GOOGLE_API_KEY'],
    address: 'GOOGLE_GEMINI_BASE_URL',
    model: 'gemini-2.5-flash',
    create: async (options) => (await import('../providers/google/index.ts')).google(withKey(options)),
  },
  fireworks: {
    keys: ['FIREWORKS_API_KEY'],
    model: undefined,
    create: async (options) => (await compatible()).fireworks(options),
  },
  deepseek: {
    keys: ['DEEPSEEK_API_KEY'],
    model: 'deepseek-chat',
    create: async (options) => (await compatible()).deepseek(options),
  },
  ollama: { keys: [], model: 'llama3.2', create: async (options) => (await compatible()).ollama(options) },
  'openai-compatible': {
    keys: [],
    model: undefined,
    create: async ({ baseUrl = '', ...options }) => (await compatible()).openaiCompatible({ ...options, baseUrl }),
  },
} satisfies Record<ProviderType, ProviderKind>

/** Other names for providers. */
const ALIASES: Readonly<Record<string, ProviderType>> = { gemini: 'google', claude: 'anthropic' }

/** The type of provider that a name stands for. */
export function typeOf(name: string): ProviderType | undefined {
  return PROVIDER_TYPES.find((type) => type === name) ?? ALIASES[name]
}
