import { tooShort } from '../auth/static-tokens.ts'
import { addressIn, type Environment, type ProviderType } from '../providers/by-name.ts'
import type { Problems } from './problems.ts'
import type { Path } from './source.ts'

const VARIABLE = /\$\{(\w+)\}/g

/** Fills in variables of the environment. A missing one is reported by its name, and is empty; values are never shown. */
export class Variables {
  readonly #problems: Problems
  readonly #env: Environment
  /** The variables that were asked for, and whether they are set. */
  readonly asked = new Map<string, boolean>()

  constructor(env: Environment, problems: Problems) {
    this.#env = env
    this.#problems = problems
  }

  /** The text with each `${NAME}` replaced. */
  in(text: string, path: Path): string {
    return text.replaceAll(VARIABLE, (_, name: string) => this.value(name, path))
  }

  inAll(table: Readonly<Record<string, string>>, path: Path): Record<string, string> {
    return Object.fromEntries(Object.entries(table).map(([key, text]) => [key, this.in(text, [...path, key])]))
  }

  /** The same text if nothing that it needs is missing; reports nothing. */
  ifComplete(text: string): string | undefined {
    const names = [...text.matchAll(VARIABLE)].map(([, name = '']) => name)
    return names.every((name) => this.#env[name]) ? text.replaceAll(VARIABLE, (_, name: string) => this.#env[name] ?? '') : undefined
  }

  value(name: string, path: Path): string {
    const value = this.#env[name]
    this.asked.set(name, Boolean(value))
    if (value) return value
    this.#problems.add(path, `needs ${name}, which the environment lacks: set it, as in \`export ${name}=…\``)
    return ''
  }

  /** A secret that the config contains, or takes from a variable; undefined if it names none. */
  secret(
    given: { readonly text?: string | undefined; readonly env?: string | undefined },
    { path, field }: { path: Path; field: string },
  ): string | undefined {
    if (given.text !== undefined) return this.in(given.text, [...path, field])
    return given.env === undefined ? undefined : this.value(given.env, [...path, `${field}Env`])
  }

  /** Where the vendor's own variable says that a provider is. */
  addressOf(type: ProviderType, path: Path): string | undefined {
    const { baseUrl, mistake } = addressIn(this.#env, type)
    if (mistake !== undefined) this.#problems.add(path, `cannot be asked: ${mistake}`)
    return baseUrl
  }

  find(names: readonly string[]): string | undefined {
    const name = names.find((each) => this.#env[each]) ?? names[0]
    if (name !== undefined) this.asked.set(name, Boolean(this.#env[name]))
    return (name !== undefined && this.#env[name]) || undefined
  }
}

/** Secrets by name. `$NAME` is an older form of `${NAME}`. */
export function secretTokens(
  tokens: Readonly<Record<string, string>>,
  variables: Variables,
  problems: Problems,
): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(tokens).map(([name, given]) => {
      const path = ['tokens', name]
      const secret = variables.in(given.replace(/^\$(\w+)$/, '${$1}'), path)
      if (problems.has(path)) return [name, secret]
      const mistake = secret === '' ? 'is empty: write the secret, or "${NAME}"' : tooShort(secret)
      if (mistake !== undefined) problems.add(path, mistake)
      if (name === 'anonymous') problems.add(path, 'cannot be the name of a token: callers without one are called that. Choose another')
      return [name, secret]
    }),
  )
}
