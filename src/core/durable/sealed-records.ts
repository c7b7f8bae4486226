import type { ClientEvent } from '../../protocol/events.ts'
import { fieldsOf, type Json, type Slot } from '../../protocol/json.ts'
import { slotsOf } from '../../protocol/message.ts'
import type { Keys } from '../ports/keys.ts'
import type { Operation, SetOperation, Store } from '../ports/store.ts'
import type { SessionRecord, TurnRecord } from './records.ts'
import { holdsPayment, Sealing } from '../secrets/sealing.ts'
import { withData } from '../tools/tool-data.ts'
import { storeKey } from '../basics/store-key.ts'

interface How {
  /** The key of the record. */
  readonly key: string
  /** The payments in it have been used. */
  readonly used: boolean
}

/** The fields of an event that may hold secrets. */
const SLOTS = ['payment', 'payment_token', 'extensions', 'metadata', 'context'] as const

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
  turn(record: TurnRecord, how: How): TurnRecord {
    const input = withData(record.input, this.#digested)
    const parts = partsOf(record)
    const kept = input === record.input ? record : { ...record, input }
    return parts ? withParts(kept, this.#kept(parts, how)) : kept
  }

  openTurn(value: Json, key: string): TurnRecord {
    const record = value as unknown as TurnRecord
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

function withParts(record: TurnRecord, { extensions, answers, given, asked, slots }: Parts): TurnRecord {
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

/** The `about` of credentials in an input's slots, which are never opened again. */
const NOWHERE = ''

function inputsKey(tenant: string, session: string): string {
  return storeKey(tenant, 'unused-inputs', session)
}

function hasSlots(event: ClientEvent): boolean {
  return SLOTS.some((name) => name in event)
}

function secretsOf(event: ClientEvent): Record<string, unknown> {
  return Object.fromEntries(SLOTS.flatMap((name) => (name in event ? [[name, (event as Record<string, unknown>)[name]]] : [])))
}
