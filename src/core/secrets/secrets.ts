import { base64 } from '../../protocol/base64.ts'
import { UampError } from '../../protocol/errors.ts'
import type { Redaction } from '../ports/redaction.ts'
import { Walk } from './redaction.ts'
import { isSecretHeader, isSecretVariable, mayHoldSecret } from './secret-names.ts'
import { SecretSearch, SHORTEST, TELLING } from './secret-search.ts'

/** `MAX_TOKENS=100000` has the name of a secret, but is none. */
const COUNT = /^[\d.,_]*$/
/** Largest secret, in bytes, that is also searched for in base64. */
const ENCODED = 16 * 1024

interface Request {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
}

/**
 * Knows secrets by value and removes them from texts. It finds a secret as it is and in the forms in which others may repeat it:
 * escaped in JSON, encoded in a URL, inside base64. The process has one instance for the secrets in its configuration.
 */
export class Secrets implements Redaction {
  readonly #values = new Set<string>()
  /** Made when first needed after `add`. */
  #search: SecretSearch | undefined

  constructor(values: Iterable<string | undefined> = []) {
    this.add(values)
  }

  /** Adds secrets for good: a key that was replaced is still a secret. */
  add(values: Iterable<string | undefined>): void {
    for (const value of values) {
      if (value === undefined || value.length < SHORTEST || this.#values.has(value)) continue
      this.#values.add(value)
      this.#search = undefined
    }
  }

  /** The text without secrets; the same text if it has none. */
  readonly text = (text: string): string => {
    if (this.#values.size === 0 || text.length < SHORTEST) return text
    this.#search ??= new SecretSearch([...this.#values].flatMap((value) => [...formsOf(value)]))
    return this.#search.clean(text)
  }

  /** A copy of JSON without secrets, even in the names of fields; the same value if it has none. */
  readonly value = <T>(value: T): T => {
    return this.#values.size === 0 ? value : (new Walk(this.text, { names: true }).through(value) as T)
  }

  /** The error to tell the outside. `cause` is unchanged, because only the log gets it. */
  readonly told = (thrown: unknown): UampError => {
    const error = UampError.from(thrown)
    const message = this.text(error.message)
    const details = this.value(error.details)
    if (message === error.message && details === error.details) return error
    return new UampError(error.code, message, { cause: error.cause, ...(details && { details }) })
  }
}

/** The secrets that a request sends, found by the names of its headers and query parameters. */
export function secretsIn({ url, headers }: Request): string[] {
  const shown: string[] = []
  for (const name in headers) if (isSecretHeader(name)) shown.push(...inHeader(headers[name] ?? ''))
  if (url.includes('@') || url.includes('?')) shown.push(...inUrl(url))
  return shown
}

/** The secrets in a configuration: the given values, and those in headers, URLs, environment variables and arguments. */
export function secretsOf({
  values = [],
  headers = {},
  urls = [],
  program = {},
}: {
  readonly values?: readonly (string | undefined)[]
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly urls?: readonly (string | undefined)[]
  readonly program?: { readonly env?: Readonly<Record<string, string | undefined>>; readonly args?: readonly string[] }
}): readonly string[] {
  const { env = {}, args = [] } = program
  return [
    ...Object.entries(env).flatMap(([name, value = '']) => (isSecretVariable(name) && !COUNT.test(value) ? [value] : inUrl(value))),
    ...args.flatMap((arg, index) => inArgument(arg, args[index - 1])),
    ...values.flatMap((value) => value ?? []),
    ...Object.entries(headers).flatMap(([name, value]) => (mayHoldSecret(name) ? inHeader(value) : [])),
    ...urls.flatMap((url) => (url === undefined ? [] : inUrl(url))),
  ]
}

/** `--api-key=x`, `--api-key x`, and URLs. */
function inArgument(arg: string, before = ''): string[] {
  const [, name, value] = /^-+([\w.-]+)=(.*)$/s.exec(arg) ?? []
  if (name !== undefined && value !== undefined) return isSecretHeader(name) ? [value] : inUrl(value)
  const flag = /^-+([\w.-]+)$/.exec(before)?.[1]
  return flag !== undefined && isSecretHeader(flag) ? [arg] : inUrl(arg)
}

/** `Bearer x`, `Basic dTpw`, or the bare value. */
function inHeader(value: string): string[] {
  const [, scheme = '', rest = value] = /^([A-Za-z][\w-]*) +(.+)$/.exec(value) ?? []
  if (scheme.toLowerCase() !== 'basic') return [rest]
  const pair = decoded(rest)
  return [rest, pair, pair.slice(pair.indexOf(':') + 1)]
}

function decoded(text: string): string {
  try {
    return atob(text)
  } catch {
    return ''
  }
}

/** `user:password@host`, `?key=…`. */
function inUrl(text: string): string[] {
  if (!URL.canParse(text)) return []
  const { username, password, searchParams } = new URL(text)
  const user = password === '' ? username : password
  const plain = user === '' ? [] : [user, unescaped(user)]
  return [...plain, ...[...searchParams].flatMap(([name, value]) => (isSecretHeader(name) ? [value] : []))]
}

function unescaped(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** The forms in which others may repeat a secret. */
function formsOf(secret: string): Set<string> {
  const escaped = JSON.stringify(secret).slice(1, -1)
  const encoded = encodeURIComponent(secret.toWellFormed())
  const lower = encoded.replaceAll(/%[0-9A-F]{2}/g, (code) => code.toLowerCase())
  // JSON in JSON: an upstream may repeat a request in the text of its error.
  const twice = JSON.stringify(escaped).slice(1, -1)
  const forms = [secret, escaped, twice, encoded, lower, encodeURI(secret.toWellFormed()), ...inBase64(secret)]
  return new Set(forms.filter((form) => form.length >= SHORTEST))
}

/** The parts of base64 that are the same wherever in the encoded text the secret begins. */
function inBase64(secret: string): string[] {
  const bytes = new TextEncoder().encode(secret)
  if (bytes.length > ENCODED) return []
  return [0, 1, 2].flatMap((before) => {
    const whole = base64(new Uint8Array([...new Uint8Array(before), ...bytes]))
    const first = Math.ceil((before * 4) / 3)
    const last = Math.floor(((before + bytes.length) * 4) / 3)
    const sure = whole.slice(first, last)
    return sure.length < TELLING ? [] : [sure, sure.replaceAll('+', '-').replaceAll('/', '_')]
  })
}
