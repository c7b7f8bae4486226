import { timeOrderedIds } from '../../core/basics/time.ts'
import type { HttpClient } from '../../core/ports/http.ts'
import type { Keys } from '../../core/ports/keys.ts'
import type { Asked, Authorisation, Offer, Refusal, Settlement } from '../../core/ports/payments.ts'
import type { Store } from '../../core/ports/store.ts'
import type { Logger } from '../../core/ports/transport.ts'
import { UampError } from '../../protocol/errors.ts'
import type { Slot } from '../../protocol/json.ts'
import type { Payment } from '../../protocol/payment.ts'
import type { Receipt } from '../../wire/x402.ts'
import type { Accounts } from '../accounts.ts'
import type { PaymentMethod } from '../method.ts'
import type { PaymentFacts } from '../underway.ts'
import { Facilitator } from './facilitator.ts'
import { facilitated, isX402, outOfTime, readProof, type Proof } from './proof.ts'
import { PaymentRecords, type PaymentRecord } from './records.ts'
import { exactFor, fromAtomic, type X402Config } from './settings.ts'
import { Settler } from './settler.ts'

export interface X402Options {
  readonly config: X402Config
  readonly accounts: Accounts
  readonly store: Store
  readonly keys: Keys
  /** Reaches the facilitator. */
  readonly http: Pick<HttpClient, 'request'>
  readonly now: () => number
  /** The server's own address, which payers are told. */
  readonly ownUrl: () => string | undefined
  readonly log: Logger
  /** Aborted when the server ends. */
  readonly closing: AbortSignal
}

const USED: Refusal = { refused: 'token_invalid', message: 'The payment was used before' }
const BUSY: Refusal = { refused: 'token_invalid', message: 'The payment is being used by another request' }
const OPEN: Refusal = { refused: 'payment_failed', message: 'The payment is still being settled: send it again later' }

/** Pays with a signed permission to move money on a chain: x402 of both versions, scheme `exact` (EIP-3009). */
export class X402Method implements PaymentMethod {
  readonly #options: X402Options
  readonly #records: PaymentRecords
  readonly #facilitator: Facilitator
  readonly #settler: Settler
  readonly #newId: () => string
  /** The payments that a turn, or the settler, works with now: each of these has one user. */
  readonly #inUse = new Set<string>()

  constructor(options: X402Options) {
    this.#options = options
    this.#records = new PaymentRecords(options)
    this.#facilitator = new Facilitator(options)
    this.#settler = new Settler({ ...options, records: this.#records, facilitator: this.#facilitator, inUse: this.#inUse })
    this.#newId = timeOrderedIds(options.now)
  }

  readonly unsettled = (): Promise<number> => this.#records.openCount()

  offer({ agent, amount, currency }: Asked): Offer {
    const { config } = this.#options
    if (currency !== config.currency || amount <= 0n) return { schemes: [] }
    const { network, payTo } = config
    const x402 = this.#x402(agent, amount)
    return { schemes: [{ scheme: 'crypto', network, address: payTo }], extra: { x402 } }
  }

  #x402(agent: string, amount: bigint): Slot {
    const { config, ownUrl } = this.#options
    const url = `${ownUrl() ?? 'uamp:/'}/agents/${encodeURIComponent(agent)}`
    return { x402Version: 2, resource: { url }, accepts: [exactFor(config, amount)] }
  }

  takes(payment: Payment): boolean {
    return isX402(payment)
  }

  /** Settles what the last run left open, and goes on to do so until `signal` aborts. */
  start(signal: AbortSignal): void {
    this.#settler.start(signal)
  }

  async find(tenant: string, id: string): Promise<PaymentFacts | undefined> {
    const found = await this.#records.named(tenant, id)
    if (!found) return undefined
    const { state, amount, currency, principal, agent, session, response, question, at } = found
    const about = { id, amount: BigInt(amount), currency, principal, agent, session, response, question, at }
    // The money of a credit has moved.
    return { ...about, state: state === 'credit' ? 'settled' : state }
  }

  async authorise(asked: Asked, payment: Payment): Promise<Authorisation | Refusal> {
    const { config } = this.#options
    if (asked.currency !== config.currency) {
      return { refused: 'token_invalid', message: `x402 pays prices in ${config.currency} here, and this one is in ${asked.currency}` }
    }
    const proof = readProof(payment, exactFor(config, asked.amount), asked)
    if ('refused' in proof) return proof
    const { network, asset } = config
    const key = this.#records.keyOf({ network, asset, payer: proof.from, nonce: proof.nonce })
    await this.#settler.left(key)
    if (this.#inUse.has(key)) return BUSY
    this.#inUse.add(key)
    const release = (): void => void this.#inUse.delete(key)
    try {
      const found = await this.#authorise(asked, proof, { key, release })
      if ('refused' in found) release()
      return found
    } catch (thrown) {
      release()
      throw thrown
    }
  }

  async #authorise(
    asked: Asked,
    proof: Proof,
    { key, release }: { readonly key: string; readonly release: () => void },
  ): Promise<Authorisation | Refusal> {
    const { config, now, closing, store } = this.#options
    const records = this.#records
    let known = await records.get(key)
    if (known?.state === 'settling') known = await this.#settler.settle(known)
    if (known) {
      if (known.state === 'settling') return OPEN
      if (known.state !== 'credit' || !isFor(known, asked) || known.digest !== records.digest(proof)) return USED
      return new Credit(known, { records, release })
    }
    const late = outOfTime(proof, now())
    if (late) return late
    const question = facilitated(proof, { ...exactFor(config, asked.amount), amount: `${proof.value}` }, asked.agent)
    // An answer whose payment could not be written down would be heard for nothing.
    await store.probe?.()
    const refusal = await this.#facilitator.verify(question, proof, closing)
    if (refusal) return refusal
    const { agent, session, response, question: name, currency, principal } = asked
    const record: PaymentRecord = {
      id: `pay_${this.#newId()}`,
      state: 'settling',
      tenant: principal.tenant,
      principal: principal.id,
      agent,
      session,
      response,
      question: name,
      currency,
      atomic: `${proof.value}`,
      amount: `${fromAtomic(proof.value, config.decimals)}`,
      network: config.network,
      asset: config.asset,
      payer: proof.from,
      nonce: proof.nonce,
      digest: records.digest(proof),
      sealed: records.seal(key, question),
      validBefore: proof.validBefore,
      at: now(),
      tries: 0,
      next: now(),
    }
    return new Verified(record, { records, release, settler: this.#settler, x402: this.#x402(asked.agent, asked.amount) })
  }
}

/** A credit is for those who paid it, and for what they paid it for. */
function isFor({ tenant, principal, agent, currency }: PaymentRecord, asked: Asked): boolean {
  const { id, tenant: theirs } = asked.principal
  return tenant === theirs && principal === id && agent === asked.agent && currency === asked.currency
}

interface Using {
  readonly records: PaymentRecords
  /** Lets others use the payment. */
  readonly release: () => void
}

interface Settling extends Using {
  readonly settler: Settler
  /** What was asked for, for another payment if this one is not settled. */
  readonly x402: Slot
}

/** What a payment of the scheme `exact` has in common: it is of one amount, and can be taken once and whole. */
abstract class Whole implements Authorisation {
  readonly scheme = 'exact'
  readonly balance = undefined
  protected readonly record: PaymentRecord

  constructor(record: PaymentRecord) {
    this.record = record
  }

  get id(): string {
    return this.record.id
  }

  get currency(): string {
    return this.record.currency
  }

  get locked(): bigint {
    return BigInt(this.record.amount)
  }

  get expiresAt(): number {
    return this.record.validBefore
  }

  /** Another amount is another payment. */
  extend(): boolean {
    return false
  }

  abstract settle(amount: bigint): Settlement
}

/** A payment that can be settled, as far as the facilitator knows. Its money moves when the work is done. */
class Verified extends Whole {
  readonly #using: Settling

  constructor(record: PaymentRecord, using: Settling) {
    super(record)
    this.#using = using
  }

  settle(amount: bigint): Settlement {
    const { records, release, settler, x402 } = this.#using
    if (amount === 0n) {
      release()
      return { operations: [], done: () => undefined }
    }
    let paid: PaymentRecord | undefined
    return {
      // Until the money has moved, the response has no payment to write down.
      get operations() {
        return paid ? [records.set({ ...paid, state: 'settled' })] : []
      },
      done: release,
      taken: this.locked,
      outside: async () => {
        const settled = await settler.begin(this.record)
        if ('failed' in settled) throw notSettled(settled.failed, this.record, x402)
        if (settled.state !== 'credit') throw pending(this.record)
        paid = settled
        return receiptOf(settled) as Receipt & Slot
      },
    }
  }
}

/** A payment whose money has moved for an answer that was not delivered. */
class Credit extends Whole {
  readonly #using: Using

  constructor(record: PaymentRecord, using: Using) {
    super(record)
    this.#using = using
  }

  settle(amount: bigint): Settlement {
    const { records, release } = this.#using
    if (amount === 0n) {
      release()
      return { operations: [], done: () => undefined }
    }
    return {
      operations: [records.set({ ...this.record, state: 'settled' })],
      done: release,
      taken: this.locked,
      outside: () => Promise.resolve(receiptOf(this.record) as Receipt & Slot),
    }
  }
}

function receiptOf({ transaction = '', network, payer }: PaymentRecord): Receipt {
  return { success: true, transaction, network, payer }
}

const PENDING = 'settlement_pending'

function pending(record: PaymentRecord): UampError {
  return unpaid(record, { reason: PENDING, message: 'The payment could not be settled yet: send the same request with it again' })
}

function notSettled(reason: string, record: PaymentRecord, x402: Slot): UampError {
  return unpaid(record, { reason, message: `The payment was not settled: ${reason}`, x402 })
}

/** Tells the payer why there is no answer, in the words of x402, too. */
function unpaid({ network, payer }: PaymentRecord, { reason, message, ...more }: Slot & { reason: string; message: string }): UampError {
  const receipt = { success: false, transaction: '', network, payer, errorReason: reason } satisfies Receipt
  return new UampError('payment_required', message, { details: { reason: 'payment_failed', receipt, ...more } })
}
