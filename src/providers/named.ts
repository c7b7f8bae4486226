import { didYouMean, nearest } from '../core/basics/nearest.ts'
import type { ModelContext, ModelRequest, Provider } from '../core/ports/provider.ts'
import { secretsOf } from '../core/secrets/secrets.ts'
import type { Capabilities } from '../protocol/capabilities.ts'
import { UampError } from '../protocol/errors.ts'
import type { Draft } from '../protocol/events.ts'
import { addressIn, MODEL_FORM, MODEL_NAME, PROVIDER_NAMES, PROVIDERS, typeOf, type Environment, type ProviderKind } from './by-name.ts'

type Named = (typeof PROVIDER_NAMES)[number]

/**
 * A model by its name, such as `openai/gpt-5`. The environment has the key of its provider. Throws if there is no such provider.
 * `known` are names of models, for who wrote a name without its provider.
 */
export function namedModel(name: string, known: readonly string[] = []): { readonly provider: Provider; readonly model: string } {
  if (!MODEL_NAME.test(name)) throw mistaken(`A model ${MODEL_FORM}, but is "${name}"${meant(name, known)}`)
  const slash = name.indexOf('/')
  const vendor = name.slice(0, slash)
  const type = typeOf(vendor)
  if (type === 'openai-compatible') {
    throw mistaken(
      `The model "${name}" has no address: make it with openaiCompatible({ name, baseUrl }) of uamp/providers/openai-compatible`,
    )
  }
  if (type === undefined) {
    const known = `there are ${PROVIDER_NAMES.join(', ')}; for any other, make a provider with its baseUrl`
    throw mistaken(`The model "${name}" names the provider "${vendor}", but ${known}${didYouMean(vendor, PROVIDER_NAMES)}`)
  }
  return { provider: new NamedProvider(type), model: name.slice(slash + 1) }
}

/**
 * A provider that is loaded, and takes its key from the environment, when it is first needed: a module may be imported, and tested
 * with another model, where there is no key.
 */
class NamedProvider implements Provider {
  readonly name: Named
  #loaded: Promise<Provider> | undefined

  constructor(name: Named) {
    this.name = name
  }

  get secrets(): readonly string[] {
    const { apiKey, baseUrl } = this.#found
    return secretsOf({ values: [apiKey], urls: [baseUrl] })
  }

  check(): void {
    const { apiKey, mistake } = this.#found
    const [key] = this.#kind.keys
    if (mistake !== undefined) throw new UampError('provider_error', `The models of ${this.name} cannot be asked: ${mistake}`)
    if (key !== undefined && apiKey === undefined)
      throw new UampError('provider_error', `The models of ${this.name} need a key: set ${key}`)
  }

  /** What a model can do is known without a key, which may only be there when the agent is served. */
  async capabilities(model: string): Promise<Capabilities> {
    return (await this.#kind.create({ name: this.name })).capabilities(model)
  }

  generate(request: ModelRequest, context: ModelContext): AsyncIterable<Draft> {
    return {
      [Symbol.asyncIterator]: () =>
        whenLoaded(
          () => this.#provider(),
          (provider) => provider.generate(request, context),
        ),
    }
  }

  get #kind(): ProviderKind {
    return PROVIDERS[this.name]
  }

  /** What the environment says at this moment. */
  get #found(): { readonly apiKey?: string; readonly baseUrl?: string; readonly mistake?: string } {
    const env = environment()
    const apiKey = this.#kind.keys.map((key) => env[key]).find(Boolean)
    return { ...(apiKey !== undefined && { apiKey }), ...addressIn(env, this.name) }
  }

  async #provider(): Promise<Provider> {
    this.check()
    const { apiKey, baseUrl } = this.#found
    this.#loaded ??= this.#kind.create({ name: this.name, ...(apiKey && { apiKey }), ...(baseUrl && { baseUrl }) })
    return this.#loaded
  }
}

/** What Node, Deno and Bun have, and Workers with Node's modules: no import, as others have none of it. */
function environment(): Environment {
  return (globalThis as { readonly process?: { readonly env?: Environment } }).process?.env ?? {}
}

/** The drafts of a provider that may not be there yet. After the first one, nothing stands between it and the reader. */
function whenLoaded(load: () => Promise<Provider>, ask: (provider: Provider) => AsyncIterable<Draft>): AsyncIterator<Draft> {
  const over = { done: true, value: undefined } as const
  let drafts: AsyncIterator<Draft> | undefined
  let left = false
  const first = async (): Promise<IteratorResult<Draft>> => {
    const provider = await load()
    // Nobody asks a model for a reader that has gone.
    if (left) return over
    drafts = ask(provider)[Symbol.asyncIterator]()
    return drafts.next()
  }
  return {
    next: () => (drafts ? drafts.next() : first()),
    async return() {
      left = true
      await drafts?.return?.()
      return over
    },
  }
}

/** The name that somebody meant who wrote another form, such as `gpt-5` or `openai:gpt-5`. */
function meant(name: string, known: readonly string[]): string {
  const [, vendor = '', model] = /^([^\s:/]+)[:/](\S+)$/.exec(name) ?? []
  const ours = known.filter((each) => typeOf(each.slice(0, each.indexOf('/'))) !== undefined)
  const near = nearest(model ?? name, new Set(ours.map((each) => each.slice(each.indexOf('/') + 1))))
  const found = model !== undefined && typeOf(vendor) ? `${vendor}/${model}` : ours.find((each) => each.endsWith(`/${near}`))
  return found === undefined ? '' : `: did you mean "${found}"?`
}

function mistaken(message: string): UampError {
  return new UampError('invalid_request', message)
}
