import { isRecord, fieldsOf, type Json, type Slot } from '../../protocol/json.ts'
import type { Keys } from '../ports/keys.ts'
import { REDACTED } from './redaction.ts'
import { isPaymentField, isSecretField } from './secret-names.ts'
import type { ClientEvent } from '../../protocol/events.ts'
import type { Operation, SetOperation, Store } from '../ports/store.ts'
import type { SessionRecord, TurnRecord } from '../durable/records.ts'
import { idIn, storeKey, tenantIn } from '../basics/store-key.ts'
import type { ContentItem } from '../../protocol/content.ts'
import { slotsOf, type Message } from '../../protocol/message.ts'

/** The prefix of a digest that replaces a used secret. */
const DIGEST = 'uamp-digest-1:'
/** Replaces a secret that cannot be sealed, because there is no key. */
const NOT_KEPT = `${DIGEST}none`
/** Deeper than clients may nest: anything deeper is refused before it gets here. */
const DEPTH = 256
/** The fields of an event that may hold secrets. */
const SLOTS = ['payment', 'payment_token', 'extensions', 'metadata', 'context'] as const
/** The `about` of credentials in an input's slots, which are never opened again. */
const NOWHERE = ''

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

interface How {
  /** The key of the record. */
  readonly key: string
  /** The payments in it have been used. */
  readonly used: boolean
}

/** Seals clients' secrets in sessions, responses and inputs on their way to the store, and opens them again. */
export class SealedRecords {
  readonly #store: Store
  readonly #sealing: Sealing

  constructor(store: Store, keys: Keys | undefined) {
    this.#store = store
    this.#sealing = new Sealing(keys)
  }

  session(record: SessionRecord, how: How): SessionRecord {
    const config = this.#extended(record.config, how)
    const client = record.client && this.#extended(record.client, how)
    return config === record.config && client === record.client ? record : { ...record, config, client }
  }

  openSession(value: Json, key: string): SessionRecord {
    return this.#sealing.open(value, key) as unknown as SessionRecord
  }

  /** Searches only slots, answers, and data from clients' tools: the texts of a conversation are not searched for secrets. */
  turn(record: TurnRecord, how: How): Json {
    const input = withData(record.input, this.#digested)
    const parts = partsOf(record)
    const short = shortened(input === record.input ? record : { ...record, input })
    return (parts ? withParts(short, this.#kept(parts, how)) : short) as unknown as Json
  }

  openTurn(value: Json, key: string): TurnRecord {
    const record = whole(value, key)
    const parts = partsOf(record)
    return parts ? withParts(record, this.#sealing.open(parts, key)) : record
  }

  /** An input whose payments are replaced by digests, because the input stream is append-only and could not drop them later. */
  input(event: ClientEvent): ClientEvent {
    const settled = hasSlots(event) ? { ...event, ...this.#sealing.settle(secretsOf(event), NOWHERE) } : event
    if (settled.type !== 'input.text' || !settled.messages) return settled
    return { ...settled, messages: [...withData(settled.messages, this.#digested)] }
  }

  /** The sealed secrets of inputs that no response has used yet. They have a record of their own, so that they can be deleted. */
  setInputs(tenant: string, session: string, events: readonly ClientEvent[]): SetOperation {
    const key = inputsKey(tenant, session)
    const parts = events.map((event) => [event.event_id, this.#sealing.seal(secretsOf(event), key)])
    return { op: 'set', key, value: Object.fromEntries(parts) as Json }
  }

  dropInputs(tenant: string, session: string): Operation {
    return { op: 'delete', key: inputsKey(tenant, session) }
  }

  async openInputs(tenant: string, session: string, events: readonly ClientEvent[]): Promise<ClientEvent[]> {
    if (!events.some((event) => hasSlots(event))) return [...events]
    const key = inputsKey(tenant, session)
    const kept = fieldsOf((await this.#store.get(key))?.value)
    return events.map((event) => ({ ...event, ...fieldsOf(this.#sealing.open(kept[event.event_id], key)) }) as ClientEvent)
  }

  /** A payment in a tool's result pays nobody here, so its digest is enough. */
  readonly #digested = (data: unknown): unknown => this.#sealing.digest(data)

  #extended<T extends { readonly extensions?: Slot | undefined }>(holder: T, how: How): T {
    const { extensions } = holder
    const kept = extensions && this.#kept(extensions, how)
    return kept === extensions ? holder : { ...holder, extensions: kept }
  }

  #kept<T>(value: T, { key, used }: How): T {
    return used ? this.#sealing.settle(value, key) : this.#sealing.seal(value, key)
  }
}

/** Leaves out what the key says, and what most responses have in common: `undefined` is not stored. */
function shortened(record: TurnRecord): StoredTurn {
  const { id, run, parent, stateless, from, after } = record
  return {
    ...record,
    id: undefined,
    tenant: undefined,
    run: run === id ? undefined : run,
    parent: parent ?? undefined,
    stateless: stateless || undefined,
    from: from || undefined,
    after: after || undefined,
  }
}

/** The opposite of `shortened`. Formats 1 and 2 left nothing out. */
function whole(value: Json, key: string): TurnRecord {
  const id = idIn(key)
  return { id, tenant: tenantIn(key), run: id, parent: null, stateless: false, from: 0, after: 0, ...(value as object) } as TurnRecord
}

type Left = 'id' | 'tenant' | 'run' | 'parent' | 'stateless' | 'from' | 'after'
type StoredTurn = Omit<TurnRecord, Left> & { readonly [name in Left]?: TurnRecord[name] | undefined }

/** The parts of a response that may hold secrets. */
type Parts = Pick<TurnRecord, 'answers' | 'given' | 'asked'> & {
  readonly extensions: Slot | undefined
  /** By message of the input. */
  readonly slots: readonly ReturnType<typeof slotsOf>[] | undefined
}

/** Undefined: there are none. */
function partsOf({ config, answers, given, asked, input }: TurnRecord): Parts | undefined {
  const extensions = config?.extensions
  const slots = input.some(({ context, extensions, metadata }) => context ?? extensions ?? metadata)
    ? input.map((each) => slotsOf(each))
    : undefined
  return extensions || answers || given || asked || slots ? { extensions, answers, given, asked, slots } : undefined
}

function withParts<R extends Pick<TurnRecord, 'input' | 'config'>>(record: R, { extensions, answers, given, asked, slots }: Parts): R {
  return {
    ...record,
    ...(slots && { input: record.input.map((message, index) => ({ ...message, ...slots[index] })) }),
    ...(record.config && extensions && { config: { ...record.config, extensions } }),
    ...(answers && { answers }),
    ...(given && { given }),
    ...(asked && { asked }),
  }
}

/** True if an input carries a payment. */
export function pays(event: ClientEvent): boolean {
  return hasSlots(event) && holdsPayment(secretsOf(event))
}

function inputsKey(tenant: string, session: string): string {
  return storeKey(tenant, 'unused-inputs', session)
}

function hasSlots(event: ClientEvent): boolean {
  return SLOTS.some((name) => name in event)
}

function secretsOf(event: ClientEvent): Record<string, unknown> {
  return Object.fromEntries(SLOTS.flatMap((name) => (name in event ? [[name, (event as Record<string, unknown>)[name]]] : [])))
}

/** Changes the `data` in tool results: the only part of a conversation in which anybody may choose the fields. */
function withData(messages: readonly Message[], change: (data: unknown) => unknown): readonly Message[] {
  return mapped(messages, (message) => {
    const { content_items: items } = message
    const changed = items && withDataIn(items, change)
    return changed === items ? message : { ...message, content_items: [...(changed ?? [])] }
  })
}

/** The same for content items, which tool results may nest. */
export function withDataIn(items: readonly ContentItem[], change: (data: unknown) => unknown): readonly ContentItem[] {
  return mapped(items, (item) => {
    if (item.type !== 'tool_result') return item
    const { data, content_items: inside } = item.tool_result
    const clean = data === undefined ? data : change(data)
    const within = inside && withDataIn(inside, change)
    if (clean === data && within === inside) return item
    return { ...item, tool_result: { ...item.tool_result, data: clean, ...(within && { content_items: [...within] }) } }
  })
}

/** Returns the same list if nothing changes, as in most messages. */
function mapped<T>(list: readonly T[], change: (item: T) => T): readonly T[] {
  let changed: T[] | undefined
  for (const [index, item] of list.entries()) {
    const made = change(item)
    if (made !== item) (changed ??= [...list])[index] = made
  }
  return changed ?? list
}
