import { storeKey } from '../../core/basics/store-key.ts'
import type { Keys } from '../../core/ports/keys.ts'
import type { Asked } from '../../core/ports/payments.ts'
import type { Operation, Store } from '../../core/ports/store.ts'
import { fieldsOf, type Json, type Slot } from '../../protocol/json.ts'
import type { Proof } from './proof.ts'

const DAY_MS = 86_400_000
/** How long a credit waits for its payer, and how long a payment whose fate nobody knows can be looked up. */
const KEPT_MS = 30 * DAY_MS
/** The payments that are not decided, by the time at which to ask again. Chains know no tenants. */
const OPEN = storeKey('', 'x402-open')
const PAGE = 100

/**
 * `settling`: the facilitator was asked to move the money, or is about to be. `credit`: it moved, and the answer that it paid for was not
 * delivered. `settled`: both. `released`: nobody could say that it moved, and it can move no more.
 */
type State = 'settling' | 'credit' | 'settled' | 'released'

/** One signed permission to pay, from the moment at which its money may move. */
export interface PaymentRecord extends Pick<Asked, 'agent' | 'session' | 'response' | 'question' | 'currency'> {
  /** Names the payment, and its movement in the ledger. */
  readonly id: string
  readonly state: State
  readonly tenant: string
  readonly principal: string
  /** In the smallest units of the asset. */
  readonly atomic: string
  /** In 10⁻⁹ of the currency's unit. */
  readonly amount: string
  readonly network: string
  readonly asset: string
  readonly payer: string
  readonly nonce: string
  /** Recognises the proof, which is not kept after it was used. */
  readonly digest: string
  /** What the facilitator is asked, while it is settling. */
  readonly sealed?: string | undefined
  readonly validBefore: number
  readonly at: number
  readonly tries: number
  /** When to ask the facilitator again, in milliseconds since 1970. */
  readonly next: number
  readonly transaction?: string | undefined
}

interface RecordsOptions {
  readonly store: Store
  readonly keys: Keys
  readonly now: () => number
}

/** The records of payments, by network, asset, payer and nonce: a chain takes each of these once. */
export class PaymentRecords {
  readonly #options: RecordsOptions

  constructor(options: RecordsOptions) {
    this.#options = options
  }

  keyOf({ network, asset, payer, nonce }: Pick<PaymentRecord, 'network' | 'asset' | 'payer' | 'nonce'>): string {
    return storeKey('', 'x402', network, asset.toLowerCase(), payer, nonce)
  }

  digest({ text }: Proof): string {
    return this.#options.keys.digest(text)
  }

  async get(key: string): Promise<PaymentRecord | undefined> {
    return (await this.#options.store.get(key))?.value as unknown as PaymentRecord | undefined
  }

  /** The record of the payment with this name. */
  async named(tenant: string, id: string): Promise<PaymentRecord | undefined> {
    const { items } = await this.#options.store.list(byId(tenant, id), { limit: 1 })
    return items[0]?.value as unknown as PaymentRecord | undefined
  }

  seal(key: string, asked: Slot): string {
    return this.#options.keys.seal(JSON.stringify(asked), key)
  }

  /** What the facilitator was asked, for another attempt. */
  open(record: PaymentRecord): Slot {
    return fieldsOf(JSON.parse(this.#options.keys.open(record.sealed ?? '', this.keyOf(record))))
  }

  set(given: PaymentRecord): Operation {
    const { now } = this.#options
    const isOpen = given.state === 'settling'
    const { sealed: _, ...record } = given
    // A proof that is out of time is refused for that, so a used one need not be remembered for longer.
    const kept = given.state === 'settled' ? Math.max(0, given.validBefore - now()) + DAY_MS : KEPT_MS
    const named = [byId(given.tenant, given.id), ''] as const
    const options = isOpen ? { index: [named, [OPEN, sortOf(given.next)] as const] } : { index: [named], ttlMs: kept }
    return { op: 'set', key: this.keyOf(given), value: (isOpen ? given : record) as unknown as Json, options }
  }

  /** How many are not decided. */
  openCount(): Promise<number> {
    return this.#options.store.count(OPEN)
  }

  remove(record: PaymentRecord): Operation {
    return { op: 'delete', key: this.keyOf(record) }
  }

  /** Resolves when a loss of power cannot undo it. */
  write(operation: Operation): Promise<void> {
    return this.#options.store.batch([operation], { sync: true })
  }

  /** Those that are due: the facilitator has to be asked again. */
  async *due(): AsyncGenerator<PaymentRecord, void> {
    const until = this.#options.now()
    for (let after: string | undefined; ;) {
      const page = await this.#options.store.list(OPEN, { limit: PAGE, ...(after !== undefined && { after }) })
      for (const { value } of page.items) {
        const record = value as unknown as PaymentRecord
        if (record.next > until) return
        yield record
      }
      if ((after = page.next) === undefined) return
    }
  }
}

function byId(tenant: string, id: string): string {
  return storeKey(tenant, 'x402-payment', id)
}

function sortOf(time: number): string {
  return String(Math.max(0, Math.floor(time))).padStart(15, '0')
}
