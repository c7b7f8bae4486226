import { isRecord } from '../../protocol/json.ts'
import type { Keys } from '../ports/keys.ts'
import { REDACTED } from './redaction.ts'
import { isPaymentField, isSecretField } from './secret-names.ts'

/** What stands for a secret that was used: `uamp-digest-1:…`. */
const DIGEST = 'uamp-digest-1:'
/** What stands for one that cannot be kept, as there is no key. */
const NOT_KEPT = `${DIGEST}none`
/** Deeper than clients may nest: what they send is refused before. */
const DEPTH = 256

type Kind = 'payment' | 'credential'
type Change = (value: unknown, kind: Kind) => unknown

/**
 * Secrets of clients in what is stored of them, found by the names of their fields: what somebody pays with, and credentials in
 * extension slots. Values are JSON, and are copied only where they change.
 */
export class Sealing {
  readonly #keys: Keys | undefined

  /** Without keys no secret is kept. */
  constructor(keys: Keys | undefined) {
    this.#keys = keys
  }

  /** For the record under this key, in which it opens again. */
  seal<T>(value: T, about: string): T {
    const keys = this.#keys
    return changed(value, (secret) => {
      if (isDigest(secret)) return secret
      return keys ? keys.seal(JSON.stringify(secret), about) : NOT_KEPT
    })
  }

  /** What was paid with has been used: nobody needs more of it than its digest. Credentials are sealed. */
  settle<T>(value: T, about: string): T {
    return changed(value, (secret, kind) => {
      if (isDigest(secret)) return secret
      if (!this.#keys) return NOT_KEPT
      return kind === 'payment' ? this.#digest(secret) : this.#keys.seal(JSON.stringify(secret), about)
    })
  }

  /** The digest of what is paid with; everything else as it is. */
  digest<T>(value: T): T {
    return changed(value, (secret, kind) => (kind === 'payment' && !isDigest(secret) ? this.#digest(secret) : secret))
  }

  /** As it was before it was sealed. What is not sealed, as older versions stored it, is as it is. */
  open<T>(value: T, about: string): T {
    const keys = this.#keys
    if (!keys) return value
    return changed(value, (secret) => (isSealed(secret) ? (JSON.parse(keys.open(secret, about)) as unknown) : secret))
  }

  #digest(secret: unknown): string {
    return this.#keys ? DIGEST + this.#keys.digest(typeof secret === 'string' ? secret : JSON.stringify(secret)) : NOT_KEPT
  }
}

/** The same, but nothing can be read of it, ever. */
export function hidden<T>(value: T): T {
  return changed(value, () => REDACTED)
}

/** The same without what somebody pays with. */
export function unpaid<T>(value: T): T {
  return changed(value, (secret, kind) => (kind === 'payment' ? REDACTED : secret))
}

/** Whether there is anything to pay with in it. */
export function holdsPayment(value: unknown): boolean {
  let found = false
  changed(value, (secret, kind) => {
    found ||= kind === 'payment' && !isDigest(secret)
    return secret
  })
  return found
}

function isDigest(value: unknown): boolean {
  return typeof value === 'string' && value.startsWith(DIGEST)
}

function isSealed(value: unknown): value is string {
  return typeof value === 'string' && value.startsWith('uamp-sealed-')
}

function changed<T>(value: T, change: Change): T {
  return walk(value, change, 0) as T
}

function walk(value: unknown, change: Change, depth: number): unknown {
  if (typeof value !== 'object' || value === null || depth > DEPTH) return value
  if (Array.isArray(value)) {
    const copy = value.map((item: unknown) => walk(item, change, depth + 1))
    return copy.every((item, index) => item === value[index]) ? value : copy
  }
  if (!isRecord(value)) return value
  let changes: Map<string, unknown> | undefined
  for (const name in value) {
    const before = value[name]
    const kind = kindOf(name, before, value)
    const after = kind ? change(before, kind) : walk(before, change, depth + 1)
    if (after !== before) changes = (changes ?? new Map<string, unknown>()).set(name, after)
  }
  // `fromEntries` takes a key `__proto__` for what it is: a key.
  return changes ? Object.fromEntries(Object.entries(value).map(([name, field]) => [name, changes.get(name) ?? field])) : value
}

function kindOf(name: string, value: unknown, among: Readonly<Record<string, unknown>>): Kind | undefined {
  if (value === undefined || value === null || value === '') return undefined
  if (isPaymentField(name, among)) return 'payment'
  return typeof value === 'string' && isSecretField(name) ? 'credential' : undefined
}
