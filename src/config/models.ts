import type { Model } from '../agents/llm/index.ts'
import type { Provider } from '../core/ports/provider.ts'
import { present } from '../wire/fields.ts'
import type { Variables } from './environment.ts'
import { PROVIDERS, typeOf, type ProviderOptions } from './providers.ts'
import { PROVIDER_TYPES, type ProviderEntry, type ProviderType } from './schema.ts'
import { configError, type Path, type Source } from './source.ts'

/** A model in a config, with the options of its provider. */
export interface NamedModel {
  readonly type: ProviderType
  readonly provider: ProviderOptions
  readonly model: string
}

type Providers = Readonly<Record<string, ProviderEntry>>

/** Finds models that a config names as `provider/model`. */
export class Models {
  readonly #source: Source
  readonly #providers: Providers
  readonly #variables: Variables
  readonly #made = new Map<string, Promise<Provider>>()

  constructor(source: Source, { providers, variables }: { readonly providers: Providers; readonly variables: Variables }) {
    this.#source = source
    this.#providers = providers
    this.#variables = variables
  }

  /** Throws if the provider is unknown, or its key is missing. */
  find(name: string, path: Path): NamedModel {
    const slash = name.indexOf('/')
    const provider = name.slice(0, slash)
    const given = Object.hasOwn(this.#providers, provider) ? this.#providers[provider] : undefined
    const type = given?.type ?? typeOf(provider) ?? (given?.baseUrl === undefined ? undefined : 'openai-compatible')
    if (type === undefined) throw this.#unknown(provider, path)
    const at = ['providers', provider]
    const apiKey = this.#key({ provider, type, given }, { path, at })
    const baseUrl = given?.baseUrl === undefined ? undefined : this.#variables.in(given.baseUrl, [...at, 'baseUrl'])
    if (type === 'openai-compatible' && baseUrl === undefined) {
      const message = 'needs a "baseUrl", such as "http://localhost:8000/v1"'
      throw configError(this.#source, [
        { path: given ? at : path, message: given ? message : `${message}: add it under providers.${provider}` },
      ])
    }
    const headers = given?.headers && this.#variables.inAll(given.headers, [...at, 'headers'])
    return {
      type,
      model: name.slice(slash + 1),
      provider: {
        // Settings and prices are found under this name. Another name is another server of the same kind.
        name: typeOf(provider) ?? provider,
        ...present({ apiKey, baseUrl, headers, retries: given?.retries, timeouts: given?.timeouts && present(given.timeouts) }),
      },
    }
  }

  /** Models of one provider share it. */
  async make({ type, provider, model }: NamedModel, settings: Model['settings']): Promise<Model> {
    const key = JSON.stringify([type, provider])
    const made = this.#made.get(key) ?? PROVIDERS[type].create(provider)
    this.#made.set(key, made)
    return { provider: await made, model, ...(settings && { settings }) }
  }

  #key(
    { provider, type, given }: { provider: string; type: ProviderType; given: ProviderEntry | undefined },
    { path, at }: { path: Path; at: Path },
  ): string | undefined {
    const written = this.#variables.secret({ text: given?.apiKey, env: given?.apiKeyEnv }, { path: at, field: 'apiKey' })
    const { keys } = PROVIDERS[type]
    const key = written ?? this.#variables.find(keys)
    if (key !== undefined && key !== '') return key
    // A user's own server may need no key.
    if (keys.length === 0 || (given?.baseUrl !== undefined && type !== typeOf(provider))) return undefined
    throw configError(this.#source, [
      { path, message: `needs a key: set ${keys[0]}, or write providers.${provider}.apiKey as "\${NAME_OF_A_VARIABLE}"` },
    ])
  }

  #unknown(provider: string, path: Path) {
    const known = [...new Set([...Object.keys(this.#providers), ...PROVIDER_TYPES])].filter((name) => name !== 'openai-compatible')
    const message = `names the provider "${provider}", but there are ${known.join(', ')}; any other needs providers.${provider}.baseUrl`
    return configError(this.#source, [{ path, message }])
  }
}
