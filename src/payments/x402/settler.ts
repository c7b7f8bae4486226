import { accountOf, type Accounts } from '../accounts.ts'
import type { Logger } from '../../core/ports/transport.ts'
import type { Facilitator } from './facilitator.ts'
import type { PaymentRecord, PaymentRecords } from './records.ts'

const SWEEP_MS = 15_000
/** The first wait before a facilitator is asked again; each is twice as long as the one before. */
const WAIT_MS = 5_000
const LONGEST_WAIT_MS = 10 * 60_000
/** A facilitator may know of a payment that was settled in its last moment. */
const GRACE_MS = 60_000
/** One that does not answer may know of it, too, when it answers again. */
const SILENCE_MS = 7 * 86_400_000

export interface SettlerOptions {
  readonly accounts: Accounts
  readonly records: PaymentRecords
  readonly facilitator: Facilitator
  /** The payments that somebody works with now. */
  readonly inUse: Set<string>
  readonly now: () => number
  readonly log: Logger
  readonly closing: AbortSignal
}

/**
 * Has the facilitator move money, and knows at any time what is known of it. Nothing is asked before it is written down, so that a
 * process that dies leaves a record to go on from. The nonce of a payment makes it harmless to ask twice.
 */
export class Settler {
  readonly #options: SettlerOptions
  #sweeping: Promise<void> | undefined
  /** The payment that the sweep asks about now. */
  #current: { readonly key: string; readonly done: Promise<unknown> } | undefined

  constructor(options: SettlerOptions) {
    this.#options = options
  }

  /** Settles a payment for the first time. `failed`: the money did not move, and never will by this attempt. */
  async begin(record: PaymentRecord): Promise<PaymentRecord | { readonly failed: string }> {
    const { records, facilitator, closing } = this.#options
    await records.write(records.set(record))
    const result = await facilitator.settle(records.open(record), record, closing)
    if (result.kind === 'settled') return this.#credit(record, result.transaction)
    if (result.kind === 'unknown') return this.#later(record, result.problem)
    await records.write(records.remove(record))
    return { failed: result.reason }
  }

  /** Asks again about a payment that nobody knows the fate of. */
  async settle(record: PaymentRecord): Promise<PaymentRecord> {
    const { records, facilitator, closing, now, log } = this.#options
    const result = await facilitator.settle(records.open(record), record, closing)
    if (result.kind === 'settled') return this.#credit(record, result.transaction)
    // A failure may mean that the first attempt has used the nonce: nobody here can tell.
    const problem = result.kind === 'failed' ? result.reason : result.problem
    const graceMs = result.kind === 'unknown' && result.isSilent ? SILENCE_MS : GRACE_MS
    if (closing.aborted || now() < record.validBefore + graceMs) return this.#later(record, problem)
    const { id, payer, nonce, atomic, network } = record
    log('warn', 'A payment was given up: nobody could say whether its money moved', { id, payer, nonce, atomic, network, problem })
    const released: PaymentRecord = { ...record, state: 'released' }
    await records.write(records.set(released))
    return released
  }

  /** The money has come. It is credit until the answer that it paid for is stored. */
  async #credit(record: PaymentRecord, transaction: string): Promise<PaymentRecord> {
    const { accounts, records, now } = this.#options
    const { id, tenant, principal, agent, session, response, question, currency, amount } = record
    const [from, to] = [accountOf.outside(currency), accountOf.agent(agent, currency)]
    await Promise.all([accounts.get(tenant, from), accounts.get(tenant, to)])
    const about = { principal, agent, session, response, question, description: `x402 ${transaction}` }
    const moved = accounts.prepare(tenant, { id, kind: 'payment', from, to, amount, currency, at: now(), ...about })
    const credit: PaymentRecord = { ...record, state: 'credit', transaction }
    await accounts.commit([moved], [records.set(credit)])
    return credit
  }

  async #later(record: PaymentRecord, problem: string): Promise<PaymentRecord> {
    const { records, now, log, closing } = this.#options
    // The process ends: the next one asks at once.
    if (closing.aborted) return record
    log('warn', 'A payment could not be settled yet', { id: record.id, problem })
    const tries = record.tries + 1
    const later = { ...record, tries, next: now() + Math.min(WAIT_MS * 2 ** (tries - 1), LONGEST_WAIT_MS) }
    await records.write(records.set(later))
    return later
  }

  start(signal: AbortSignal): void {
    // A server may be closed before it has started: nobody would stop the timer.
    if (signal.aborted) return
    const sweep = (): void => {
      this.sweep().catch((error: unknown) => signal.aborted || this.#options.log('error', 'Payments could not be settled', { error }))
    }
    const timer = setInterval(sweep, SWEEP_MS)
    ;(timer as { unref?: () => void }).unref?.()
    signal.addEventListener('abort', () => clearInterval(timer), { once: true })
    sweep()
  }

  /** Asks about everything that is due. */
  sweep(): Promise<void> {
    return (this.#sweeping ??= this.#sweep().finally(() => (this.#sweeping = undefined)))
  }

  async #sweep(): Promise<void> {
    const { records, inUse, closing, log } = this.#options
    for await (const found of records.due()) {
      if (closing.aborted) return
      const key = records.keyOf(found)
      if (inUse.has(key)) continue
      inUse.add(key)
      const done = this.#again(key).finally(() => inUse.delete(key))
      // One that cannot be asked about keeps none of the others from it.
      const failed = (error: unknown): unknown => closing.aborted || log('error', 'A payment could not be settled', { id: found.id, error })
      this.#current = { key, done: done.catch(failed) }
      await this.#current.done
    }
  }

  /** Since it was listed, its payer may have come back with it. */
  async #again(key: string): Promise<void> {
    const record = await this.#options.records.get(key)
    if (record?.state === 'settling') await this.settle(record)
  }

  /** Resolves when the sweep is not at work with a payment: its payer then sees what became of it. */
  async left(key: string): Promise<void> {
    if (this.#current?.key === key) await this.#current.done
  }
}
