import { configError, type Path, type Source } from './source.ts'

export type Environment = Readonly<Record<string, string | undefined>>

const VARIABLE = /\$\{(\w+)\}/g

/** Fills in variables of the environment. Errors name a missing variable, but never show a value. */
export class Variables {
  readonly #source: Source
  readonly #env: Environment

  constructor(source: Source, env: Environment) {
    this.#source = source
    this.#env = env
  }

  /** The text with each `${NAME}` replaced. */
  in(text: string, path: Path): string {
    return text.replaceAll(VARIABLE, (_, name: string) => this.value(name, path))
  }

  inAll(table: Readonly<Record<string, string>>, path: Path): Record<string, string> {
    return Object.fromEntries(Object.entries(table).map(([key, text]) => [key, this.in(text, [...path, key])]))
  }

  value(name: string, path: Path): string {
    const value = this.#env[name]
    if (value) return value
    throw configError(this.#source, [{ path, message: `needs ${name}, which the environment lacks: set it, as in \`export ${name}=…\`` }])
  }

  /** A secret that the config contains, or takes from a variable; undefined if it names none. */
  secret(
    given: { readonly text?: string | undefined; readonly env?: string | undefined },
    { path, field }: { path: Path; field: string },
  ): string | undefined {
    if (given.text !== undefined) return this.in(given.text, [...path, field])
    return given.env === undefined ? undefined : this.value(given.env, [...path, `${field}Env`])
  }

  find(names: readonly string[]): string | undefined {
    return names.map((name) => this.#env[name]).find((value) => value !== undefined && value !== '')
  }
}

/** Secrets by name. `$NAME` is an older form of `${NAME}`. */
export function secretTokens(tokens: Readonly<Record<string, string>>, source: Source, env: Environment): Readonly<Record<string, string>> {
  const variables = new Variables(source, env)
  return Object.fromEntries(
    Object.entries(tokens).map(([name, given]) => {
      const path = ['tokens', name]
      const secret = variables.in(given.replace(/^\$(\w+)$/, '${$1}'), path)
      if (secret === '') throw configError(source, [{ path, message: 'is empty: write the secret, or "${NAME}"' }])
      return [name, secret]
    }),
  )
}
