import { base64 } from '../protocol/base64.ts'
import { UampError } from '../protocol/errors.ts'
import type { Redaction } from './ports/redaction.ts'
import { REDACTED, Walk } from './redaction.ts'
import { isSecretHeader, isSecretVariable, mayHoldSecret } from './secret-names.ts'

/** A shorter value is not looked for: it may be a word. */
const SHORTEST = 6
/** A part of a secret counts where a text was cut off in it, or where it is so long and half of it. */
const TELLING = 16
/** Values that were seen in requests, of clients too. Beyond it the one that was used longest ago is forgotten. */
const LEARNT = 4096
/** Names of headers that were judged. */
const NAMES = 256
/** `MAX_TOKENS=100000` is called like a secret, and is none. */
const COUNT = /^[\d.,_]*$/
/** Bytes of a secret that is looked for in base64 too. */
const ENCODED = 16 * 1024

interface Request {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
}

/**
 * Every secret that this process holds, by value, and the one redaction of what leaves it. A secret is found as it is and as
 * others may repeat it: escaped in JSON, encoded in an address, inside base64.
 */
export class Secrets implements Redaction {
  readonly #configured = new Set<string>()
  /** The one that was used last is the last. */
  readonly #learnt = new Set<string>()
  readonly #names = new Map<string, boolean>()
  /** By the first characters: each form, and how many secrets have it. */
  readonly #forms = new Map<string, Map<string, number>>()
  /** Whether any form begins with two such characters: most places of a text need no further look. */
  readonly #begins = new Uint8Array(1 << 16)

  constructor(values: Iterable<string | undefined> = []) {
    this.add(values)
  }

  /** These are secrets, for good: an old key is still one. */
  add(values: Iterable<string | undefined>): void {
    for (const value of values) {
      if (value === undefined || value.length < SHORTEST || this.#configured.has(value)) continue
      this.#configured.add(value)
      if (!this.#learnt.delete(value)) this.#index(value)
    }
  }

  /** What a request shows to the other side, which may repeat it. */
  learn({ url, headers }: Request): void {
    for (const name in headers) if (this.#isSecret(name)) this.#learn(inHeader(headers[name] ?? ''))
    if (url.includes('@') || url.includes('?')) this.#learn(inUrl(url))
  }

  /** Asked for every header of every request: most have the same names. */
  #isSecret(name: string): boolean {
    let known = this.#names.get(name)
    if (known === undefined) {
      if (this.#names.size >= NAMES) this.#names.clear()
      this.#names.set(name, (known = isSecretHeader(name)))
    }
    return known
  }

  #learn(values: readonly string[]): void {
    for (const value of values) {
      if (value.length < SHORTEST || this.#configured.has(value)) continue
      if (!this.#learnt.delete(value)) this.#index(value)
      this.#learnt.add(value)
      if (this.#learnt.size <= LEARNT) continue
      const [oldest = ''] = this.#learnt
      this.#learnt.delete(oldest)
      this.#forget(oldest)
    }
  }

  /** The text without secrets. The same text where it has none. */
  readonly text = (text: string): string => {
    if (this.#forms.size === 0 || text.length < SHORTEST) return text
    let clean = ''
    let from = 0
    for (let at = 0; at <= text.length - SHORTEST; at++) {
      if (this.#begins[hash(text, at)] === 0) continue
      const forms = this.#forms.get(text.slice(at, at + SHORTEST))
      if (!forms) continue
      const length = longest(text, at, forms.keys())
      if (length === 0) continue
      clean += text.slice(from, at) + REDACTED
      from = at + length
      at = from - 1
    }
    return from === 0 ? text : clean + text.slice(from)
  }

  /** A copy of JSON without secrets, also in the names of fields; the same value where it has none. */
  readonly value = <T>(value: T): T => {
    return this.#forms.size === 0 ? value : (new Walk(this.text).through(value) as T)
  }

  /** What anybody outside is told of what was thrown. `cause` stays as it was: it goes to the log alone. */
  readonly told = (thrown: unknown): UampError => {
    const error = UampError.from(thrown)
    const message = this.text(error.message)
    const details = this.value(error.details)
    if (message === error.message && details === error.details) return error
    return new UampError(error.code, message, { cause: error.cause, ...(details && { details }) })
  }

  #index(value: string): void {
    for (const form of formsOf(value)) {
      const start = form.slice(0, SHORTEST)
      const same = this.#forms.get(start) ?? new Map<string, number>()
      this.#forms.set(start, same.set(form, (same.get(form) ?? 0) + 1))
      this.#begins[hash(form, 0)] = 1
    }
  }

  #forget(value: string): void {
    for (const form of formsOf(value)) {
      const start = form.slice(0, SHORTEST)
      const same = this.#forms.get(start)
      const left = (same?.get(form) ?? 1) - 1
      if (left > 0) same?.set(form, left)
      else same?.delete(form)
      if (same?.size === 0) this.#forms.delete(start)
    }
  }
}

/** The secrets of whoever is called with these: the values, and what headers and addresses hold. */
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

/** `--api-key=x`, `--api-key x`, and addresses. */
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

/** How a secret may be written by somebody who repeats it. */
function formsOf(secret: string): Set<string> {
  const escaped = JSON.stringify(secret).slice(1, -1)
  const encoded = encodeURIComponent(secret.toWellFormed())
  const lower = encoded.replaceAll(/%[0-9A-F]{2}/g, (code) => code.toLowerCase())
  // JSON in JSON: an upstream that repeats a request in the text of its error.
  const twice = JSON.stringify(escaped).slice(1, -1)
  const forms = [secret, escaped, twice, encoded, lower, encodeURI(secret.toWellFormed()), ...inBase64(secret)]
  return new Set(forms.filter((form) => form.length >= SHORTEST))
}

/** What base64 of a text with the secret in it has in common, wherever in the text that stands. */
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

/** How much of the text from there on is one of these, or 0. */
function longest(text: string, at: number, forms: Iterable<string>): number {
  let most = 0
  for (const form of forms) {
    let same = SHORTEST
    while (same < form.length && at + same < text.length && form.charCodeAt(same) === text.charCodeAt(at + same)) same++
    const isIt = same === form.length || at + same === text.length || (same >= TELLING && same * 2 >= form.length)
    if (isIt && same > most) most = same
  }
  return most
}

function hash(text: string, at: number): number {
  return ((text.charCodeAt(at) << 8) ^ text.charCodeAt(at + 1)) & 0xffff
}
