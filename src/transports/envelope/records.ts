import { goesWith, storeKey } from '../../core/basics/store-key.ts'
import { CORE_LIMITS } from '../../core/basics/limits.ts'
import type { Principal } from '../../core/ports/access.ts'
import type { Alias } from '../../core/ports/session.ts'
import type { SetOperation, Store } from '../../core/ports/store.ts'
import { messageKey, type Envelope, type Intent } from '../../envelope/schema.ts'
import type { Json } from '../../protocol/json.ts'
import type { EnvelopeSettings } from './settings.ts'

/** A message that was accepted: sent again it has the same answer, and no other effect. */
export interface MessageRecord {
  readonly id: string
  readonly hash: string
  readonly intent: Intent
  readonly from: string
  readonly agent: string
  readonly at: number
  /** The conversation that it belongs to. */
  readonly session?: string | undefined
  /** The response to it, and its stream. */
  readonly response?: string | undefined
  readonly stream?: string | undefined
  /** The signed message that closed the exchange, once somebody has asked for it. */
  readonly closing?: Envelope | undefined
}

/** A record as it was read. */
export interface FoundRecord {
  readonly key: string
  readonly record: MessageRecord
  readonly version: number
}

/** Stored with the response to a message. */
export interface StreamNote {
  readonly message: string
  readonly stream: string
  readonly window: number
  readonly from: string
}

/** The messages that were accepted, by those who sent them and their ids. */
export class MessageRecords {
  readonly #store: Store
  /** How long a message can come again: its time may be so far in the past, or in the future. */
  readonly #againMs: number

  constructor(store: Store, { skewSeconds }: Pick<EnvelopeSettings, 'skewSeconds'>) {
    this.#store = store
    this.#againMs = 2 * skewSeconds * 1000
  }

  keyOf({ tenant, id: owner }: Principal, id: string): string {
    return storeKey(tenant, 'envelope', owner, messageKey(id))
  }

  async get(key: string): Promise<MessageRecord | undefined> {
    return (await this.find(key))?.record
  }

  async find(key: string): Promise<FoundRecord | undefined> {
    const found = await this.#store.get(key)
    return found && { key, record: found.value as unknown as MessageRecord, version: found.version }
  }

  /** `ifVersion`: the record must be as it was read; 0: it must be new. */
  operation(
    key: string,
    record: MessageRecord,
    { tenant, ifVersion }: { readonly tenant: string; readonly ifVersion?: number },
  ): SetOperation {
    const index = record.session === undefined ? [] : [[goesWith(tenant, record.session), ''] as const]
    const options = { ttlMs: CORE_LIMITS.sessionTtlMs, index, ...(ifVersion !== undefined && { ifVersion }) }
    return { op: 'set', key, value: record as unknown as Json, options }
  }

  /** Rejects with `conflict` if the record was removed since it was read: nothing of a removed conversation comes back. */
  close({ key, record, version }: FoundRecord, closing: Envelope, { tenant }: Principal): Promise<void> {
    return this.write(this.operation(key, { ...record, closing }, { tenant, ifVersion: version }))
  }

  /**
   * That a message was taken, for as long as it can come again. It stays when the conversation is removed with its records: otherwise the
   * message would have its effect a second time.
   */
  taken({ tenant, id: owner }: Principal, { id, hash }: Pick<MessageRecord, 'id' | 'hash'>): SetOperation {
    return { op: 'set', key: takenKey(tenant, owner, id), value: hash, options: { ttlMs: this.#againMs } }
  }

  /** The hash of a message that was taken a short while ago. */
  async hashTaken({ tenant, id: owner }: Principal, id: string): Promise<string | undefined> {
    const found = await this.#store.get(takenKey(tenant, owner, id))
    return typeof found?.value === 'string' ? found.value : undefined
  }

  /** Resolves when a loss of power cannot undo it. */
  write(...operations: SetOperation[]): Promise<void> {
    return this.#store.batch(operations, { sync: true })
  }
}

function takenKey(tenant: string, owner: string, id: string): string {
  return storeKey(tenant, 'envelope-taken', owner, messageKey(id))
}

/** The name under which the response of a stream is found. */
export function streamAlias(stream: string): Alias {
  return { protocol: 'envelope', id: stream }
}
