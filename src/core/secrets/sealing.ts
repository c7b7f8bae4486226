import { isRecord } from '../../protocol/json.ts'
import type { Keys } from '../ports/keys.ts'
import { REDACTED } from './redaction.ts'
import { isPaymentField, isSecretField } from './secret-names.ts'

/** The prefix of a digest that replaces a used secret. */
const DIGEST = 'uamp-digest-1:'
/** Replaces a secret that cannot be sealed, because there is no key. */
const NOT_KEPT = `${DIGEST}none`
/** Deeper than clients may nest: anything deeper is refused before it gets here. */
const DEPTH = 256

type Kind = 'payment' | 'credential'
type Change = (value: unknown, kind: Kind) => unknown

/**
 * Seals clients' secrets in data that is stored. It finds them by the names of their fields: payments, and credentials in extension
 * slots. Values are JSON, and are copied only where they change.
 */
export class Sealing {
  readonly #keys: Keys | undefined

  /** Without keys, secrets are dropped. */
  constructor(keys: Keys | undefined) {
    this.#keys = keys
  }

  /** Seals secrets for the record with the key `about`: they open only there. */
  seal<T>(value: T, about: string): T {
    const keys = this.#keys
    return changed(value, (secret) => {
      if (isDigest(secret)) return secret
      return keys ? keys.seal(JSON.stringify(secret), about) : NOT_KEPT
    })
  }

  /** Replaces payments by their digests, once they have been used. Seals credentials. */
  settle<T>(value: T, about: string): T {
    return changed(value, (secret, kind) => {
      if (isDigest(secret)) return secret
      if (!this.#keys) return NOT_KEPT
      return kind === 'payment' ? this.#digest(secret) : this.#keys.seal(JSON.stringify(secret), about)
    })
  }

  /** Replaces payments by their digests, and leaves everything else as it is. */
  digest<T>(value: T): T {
    return changed(value, (secret, kind) => (kind === 'payment' && !isDigest(secret) ? this.#digest(secret) : secret))
  }

  /** Opens sealed secrets. Secrets that older versions stored without a seal stay as they are. */
  open<T>(value: T, about: string): T {
    const keys = this.#keys
    if (!keys) return value
    return changed(value, (secret) => (isSealed(secret) ? (JSON.parse(keys.open(secret, about)) as unknown) : secret))
  }

  #digest(secret: unknown): string {
    return this.#keys ? DIGEST + this.#keys.digest(typeof secret === 'string' ? secret : JSON.stringify(secret)) : NOT_KEPT
  }
}

/** Replaces every secret, for good. */
export function hidden<T>(value: T): T {
  return changed(value, () => REDACTED)
}

/** Replaces every payment, for good. */
export function unpaid<T>(value: T): T {
  return changed(value, (secret, kind) => (kind === 'payment' ? REDACTED : secret))
}

/** True if a value holds a payment that was not used yet. */
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
  // `fromEntries` treats `__proto__` as a plain key.
  return changes ? Object.fromEntries(Object.entries(value).map(([name, field]) => [name, changes.get(name) ?? field])) : value
}

function kindOf(name: string, value: unknown, among: Readonly<Record<string, unknown>>): Kind | undefined {
  if (value === undefined || value === null || value === '') return undefined
  if (isPaymentField(name, among)) return 'payment'
  return typeof value === 'string' && isSecretField(name) ? 'credential' : undefined
}
