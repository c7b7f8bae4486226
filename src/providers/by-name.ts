/** The providers that a model's name may begin with. This file and `named.ts` alone know all of them. */
import type { Timeouts } from '../core/ports/http.ts'
import type { Provider } from '../core/ports/provider.ts'
import { addressMistake } from '../wire/address.ts'

/** Those that have an address of their own. */
export const PROVIDER_NAMES = ['openai', 'anthropic', 'google', 'fireworks', 'deepseek', 'ollama'] as const
export const PROVIDER_TYPES = [...PROVIDER_NAMES, 'openai-compatible'] as const
export type ProviderType = (typeof PROVIDER_TYPES)[number]

/** What follows the first slash is the provider's own name of the model. */
export const MODEL_NAME = /^[^\s/]+\/\S+$/
export const MODEL_FORM = 'must be provider/model, such as "openai/gpt-5-mini" or "ollama/llama3.2"'

export interface ProviderOptions {
  readonly name: string
  readonly apiKey?: string
  readonly baseUrl?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly retries?: number
  readonly timeouts?: Partial<Timeouts>
}

/** Variables of the environment. */
export type Environment = Readonly<Record<string, string | undefined>>

export interface ProviderKind {
  /** Environment variables for its key, the preferred one first; none if it needs no key. */
  readonly keys: readonly string[]
  /** The environment variable in which the vendor's own clients find another address. */
  readonly address?: string
  /** The model that `uamp init` suggests, and that is served if there is a key but no config. */
  readonly model: string | undefined
  /** Loads the provider only when it is used. */
  create(options: ProviderOptions): Promise<Provider>
}

const compatible = () => import('./openai-compatible/index.ts')
/** Whoever calls `create` has refused a missing key before. */
const withKey = <T extends ProviderOptions>(options: T) => ({ ...options, apiKey: options.apiKey ?? '' })

export const PROVIDERS = {
  openai: {
    keys: ['OPENAI_API_KEY'],
    address: 'OPENAI_BASE_URL',
    model: 'gpt-5-mini',
    create: async (options) => (await import('./openai/index.ts')).openai(withKey(options)),
  },
  anthropic: {
    keys: ['ANTHROPIC_API_KEY'],
    address: 'ANTHROPIC_BASE_URL',
    model: 'claude-sonnet-4-5',
    create: async (options) => (await import('./anthropic/index.ts')).anthropic(withKey(options)),
  },
  google: {
    keys: ['GEMINI_API_KEY', 'GOOGLE_API_KEY'],
    address: 'GOOGLE_GEMINI_BASE_URL',
    model: 'gemini-2.5-flash',
    create: async (options) => (await import('./google/index.ts')).google(withKey(options)),
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

/** Where the environment says that a provider is; undefined if it says nothing. A wrong address is told by `mistake`. */
export function addressIn(env: Environment, type: ProviderType): { readonly baseUrl?: string; readonly mistake?: string } {
  const { address }: ProviderKind = PROVIDERS[type]
  const baseUrl = address === undefined ? undefined : env[address]
  if (!baseUrl) return {}
  const mistake = addressMistake(baseUrl)
  return { baseUrl, ...(mistake !== undefined && { mistake: `${address} ${mistake}` }) }
}
