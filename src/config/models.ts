import type { Model } from '../agents/llm/index.ts'
import type { Provider } from '../core/ports/provider.ts'
import { PROVIDER_NAMES, PROVIDERS, typeOf, type ProviderOptions, type ProviderType } from '../providers/by-name.ts'
import { addressMistake } from '../wire/address.ts'
import { present } from '../wire/fields.ts'
import type { Variables } from './environment.ts'
import { didYouMean } from '../core/basics/nearest.ts'
import type { Problems } from './problems.ts'
import { checkHeaders } from './headers.ts'
import type { ProviderEntry } from './schema.ts'
import type { Path } from './source.ts'

/** A model in a config, with the options of its provider. */
export interface NamedModel {
  readonly type: ProviderType
  readonly provider: ProviderOptions
  readonly model: string
  /** Where the key is written in the config. Undefined: it comes from the environment. */
  readonly keyAt?: string
}

type Providers = Readonly<Record<string, ProviderEntry>>

export interface ModelsOptions {
  readonly providers: Providers
  /** Providers whose entries have mistakes, which are reported already. */
  readonly broken: ReadonlySet<string>
  readonly variables: Variables
  readonly problems: Problems
}

/** Finds models that a config names as `provider/model`. */
export class Models {
  readonly #options: ModelsOptions
  readonly #made = new Map<string, Promise<Provider>>()
  readonly #found: NamedModel[] = []

  constructor(options: ModelsOptions) {
    this.#options = options
  }

  /** Reports mistakes in all providers, also in those that no model uses yet. */
  check(): void {
    const { providers, variables, problems } = this.#options
    for (const [name, { baseUrl, headers }] of Object.entries(providers)) {
      const at = ['providers', name]
      const address = baseUrl === undefined ? undefined : variables.ifComplete(baseUrl)
      const mistake = address === undefined ? undefined : addressMistake(address)
      if (mistake !== undefined) problems.add([...at, 'baseUrl'], mistake)
      const complete = Object.entries(headers ?? {}).map(([key, text]) => [key, variables.ifComplete(text) ?? ''])
      checkHeaders(Object.fromEntries(complete), [...at, 'headers'], problems)
    }
  }

  /** Reports an unknown provider, or one without a key or an address. */
  find(name: string, path: Path): NamedModel | undefined {
    const { providers, broken, variables, problems } = this.#options
    const slash = name.indexOf('/')
    const provider = name.slice(0, slash)
    if (broken.has(provider)) return undefined
    const given = Object.hasOwn(providers, provider) ? providers[provider] : undefined
    const type = given?.type ?? typeOf(provider) ?? (given?.baseUrl === undefined ? undefined : 'openai-compatible')
    if (type === undefined) return this.#unknown(provider, path)
    const at = ['providers', provider]
    const apiKey = this.#key({ provider, type, given }, { path, at })
    const baseUrl = given?.baseUrl === undefined ? variables.addressOf(type, path) : variables.in(given.baseUrl, [...at, 'baseUrl'])
    if (type === 'openai-compatible' && baseUrl === undefined) {
      const message = 'needs a "baseUrl", such as "http://localhost:8000/v1"'
      problems.add(given ? at : path, given ? message : `${message}: add it under providers.${provider}`)
    }
    const headers = given?.headers && variables.inAll(given.headers, [...at, 'headers'])
    const found: NamedModel = {
      type,
      model: name.slice(slash + 1),
      ...(given?.apiKey !== undefined && { keyAt: `providers.${provider}.apiKey` }),
      ...(given?.apiKeyEnv !== undefined && { keyAt: given.apiKeyEnv }),
      provider: {
        // Settings and prices are found under this name. Another name is another server of the same kind.
        name: typeOf(provider) ?? provider,
        ...present({ apiKey, baseUrl, headers, retries: given?.retries, timeouts: given?.timeouts && present(given.timeouts) }),
      },
    }
    this.#found.push(found)
    return found
  }

  /** All models that were looked for and found. */
  get found(): readonly NamedModel[] {
    return this.#found
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
    const { variables, problems } = this.#options
    const written = variables.secret({ text: given?.apiKey, env: given?.apiKeyEnv }, { path: at, field: 'apiKey' })
    const { keys } = PROVIDERS[type]
    const key = written ?? variables.find(keys)
    if (key !== undefined && key !== '') return key
    if (problems.has([...at, 'apiKey']) || problems.has([...at, 'apiKeyEnv'])) return undefined
    // A user's own server may need no key.
    if (keys.length === 0 || (given?.baseUrl !== undefined && type !== typeOf(provider))) return undefined
    problems.add(path, `needs a key: set ${keys[0]}, or write providers.${provider}.apiKey as "\${NAME_OF_A_VARIABLE}"`)
    return undefined
  }

  #unknown(provider: string, path: Path): undefined {
    const { providers, problems } = this.#options
    const known = [...new Set([...Object.keys(providers), ...PROVIDER_NAMES])]
    const others = `but there are ${known.join(', ')}; any other needs providers.${provider}.baseUrl`
    problems.add(path, `names the provider "${provider}", ${others}${didYouMean(provider, known)}`)
  }
}
