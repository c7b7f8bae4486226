import { goesWith, storeKey } from '../../core/basics/store-key.ts'
import { CORE_LIMITS } from '../../core/basics/limits.ts'
import type { Principal } from '../../core/ports/access.ts'
import type { Alias } from '../../core/ports/session.ts'
import type { SetOperation, Store } from '../../core/ports/store.ts'
import { messageKey, type Envelope, type Intent } from '../../envelope/schema.ts'
import type { Json } from '../../protocol/json.ts'

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

  constructor(store: Store) {
    this.#store = store
  }

  keyOf({ tenant, id: owner }: Principal, id: string): string {
    return storeKey(tenant, 'envelope', owner, messageKey(id))
  }

  async get(key: string): Promise<MessageRecord | undefined> {
    return (await this.#store.get(key))?.value as unknown as MessageRecord | undefined
  }

  /** `ifVersion` 0: the record must be new. */
  operation(key: string, record: MessageRecord, { tenant, isNew }: { readonly tenant: string; readonly isNew: boolean }): SetOperation {
    const index = record.session === undefined ? [] : [[goesWith(tenant, record.session), ''] as const]
    const options = { ttlMs: CORE_LIMITS.sessionTtlMs, index, ...(isNew && { ifVersion: 0 }) }
    return { op: 'set', key, value: record as unknown as Json, options }
  }

  /** Resolves when a loss of power cannot undo it. */
  write(operation: SetOperation): Promise<void> {
    return this.#store.batch([operation], { sync: true })
  }
}

/** The name under which the response of a stream is found. */
export function streamAlias(stream: string): Alias {
  return { protocol: 'envelope', id: stream }
}
