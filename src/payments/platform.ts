import { formatAmount } from '../protocol/money.ts'
import { storeKey } from '../core/basics/store-key.ts'
import type { HttpClient } from '../core/ports/http.ts'
import type { Asked, Authorisation, Offer, Refusal, Settlement } from '../core/ports/payments.ts'
import type { Store } from '../core/ports/store.ts'
import type { Logger } from '../core/ports/transport.ts'
import { UampError } from '../protocol/errors.ts'
import type { Json, Slot } from '../protocol/json.ts'
import type { Payment } from '../protocol/payment.ts'
import { backoff } from '../wire/backoff.ts'
import type { PaymentMethod } from './method.ts'
import { amountOf, codeOf, PlatformApi, type Said } from './platform-api.ts'

/** How long a lock may be open there: longer than a turn. */
const LOCK_SECONDS = 3600
/** How often a settlement is tried while the payer waits. */
const TRIES = 2
/** How long one is tried afterwards. By then its lock is over in any case. */
const KEPT_MS = 30 * 86_400_000
/** So many settlements may wait for the other ledger. Beyond it nothing more is sold for its tokens, because it does not pay. */
const MOST_WAITING = 1_000
const OUTBOX = 'money-platform'
const PAGE = 100

/** A ledger elsewhere, whose tokens pay agents of this server. */
export interface PlatformSettings {
  /** Where its API is: `https://pay.example/api/payments`. */
  readonly url: string
  /** What this server shows there. */
  readonly token?: string | undefined
  /** What payers call it. Default: its host. */
  readonly network?: string | undefined
  /** What its tokens hold. Default: USD. */
  readonly currency?: string | undefined
}

export interface PlatformOptions extends PlatformSettings {
  readonly store: Store
  /** Guarded: it calls only what the operator allows. */
  readonly http: HttpClient
  readonly log: Logger
  readonly now: () => number
  readonly newId: () => string
}

/** A settlement whose outcome is not known yet. Nothing of its token is in it. */
interface Pending {
  readonly id: string
  readonly tenant: string
  readonly lock: string
  /** A whole number of 10⁻⁹ units, as text. */
  readonly amount: string
  readonly currency: string
  readonly agent: string
  readonly response: string
  readonly at: number
}

type Outcome = 'settled' | 'unknown' | Refusal

/**
 * Pays with tokens of a ledger elsewhere. The amount is locked there before the agent runs, and settled before the end is told. A
 * settlement whose outcome is unknown is tried again with the same key until it is known: the money is locked, so the answer is given.
 */
export class PlatformMethod implements PaymentMethod {
  readonly #options: PlatformOptions
  readonly #api: PlatformApi
  readonly #network: string
  readonly #currency: string
  readonly #pause = backoff({ minMs: 1_000, maxMs: 60_000 })
  /** Settlements that a response waits for. */
  readonly #running = new Set<string>()
  #failures = 0
  #timer: ReturnType<typeof setTimeout> | undefined
  #closed = false

  constructor(options: PlatformOptions) {
    const { url, token, http } = options
    if (!URL.canParse(url))
      throw new UampError('invalid_request', 'payments.platform.url is no address: write it as in "https://pay.example"')
    this.#options = options
    this.#api = new PlatformApi({ url, token, http })
    this.#network = options.network ?? new URL(url).host
    this.#currency = options.currency ?? 'USD'
  }

  /** Goes on with the settlements that the last run left, until `signal` aborts. */
  start(signal: AbortSignal): void {
    // A server may be closed before it has started: nobody would stop the timer.
    if (signal.aborted) return
    const stop = (): void => {
      this.#closed = true
      clearTimeout(this.#timer)
    }
    signal.addEventListener('abort', stop, { once: true })
    void this.#retry()
  }

  readonly unsettled = (): Promise<number> => this.#options.store.count(OUTBOX)

  offer({ currency }: Asked): Offer {
    return { schemes: currency === this.#currency ? [{ scheme: 'token', network: this.#network }] : [] }
  }

  takes({ token }: Payment): boolean {
    return token !== undefined
  }

  async authorise(asked: Asked, { token }: Payment): Promise<Authorisation | Refusal> {
    const { amount, currency, agent } = asked
    if (currency !== this.#currency) return refused('token_invalid', `The ledger of this token has no ${currency}`)
    // An answer whose payment could not be written down would be heard for nothing.
    await this.#options.store.probe?.()
    const waiting = await this.unsettled()
    if (waiting >= MOST_WAITING)
      return this.#failed('sell anything', { kind: 'unknown', cause: new Error(`${waiting} payments wait for it`) })
    const verified = await this.#api.ask('POST', 'verify', { token, agent })
    if (verified.kind !== 'done') return this.#failed('verify a payment token', verified)
    const { valid, currency: holds, expiresAt } = verified.body
    if (valid !== true)
      return refused(codeOf(verified.body).includes('expired') ? 'token_expired' : 'token_invalid', 'The token is not valid')
    if (typeof holds === 'string' && holds !== currency) return refused('token_invalid', `The payment token holds no ${currency}`)
    const balance = amountOf(verified.body, 'balance')
    if (balance !== undefined && balance < amount) return { ...tooLittle(asked), balance }
    const locked = await this.#api.ask('POST', 'lock', { token, agent, currency, amount: formatAmount(amount), expiresIn: LOCK_SECONDS })
    if (locked.kind !== 'done') return this.#failed('lock money', locked)
    const { lockId } = locked.body
    const given = amountOf(locked.body, 'lockedAmount', 'lockedAmountDollars')
    if (typeof lockId !== 'string' || lockId === '' || given === undefined) {
      return this.#failed('lock money', { kind: 'unknown', cause: new Error('Its answer names no lock') })
    }
    if (given < amount) {
      this.#release(lockId)
      return this.#failed('lock money', { kind: 'unknown', cause: new Error('It locked less than was asked for') })
    }
    return this.#lock(asked, lockId, { expiresAt: timeIn(expiresAt), balance: balance === undefined ? undefined : balance - amount })
  }

  #lock(asked: Asked, lock: string, found: { expiresAt: number | undefined; balance: bigint | undefined }): Authorisation {
    const id = `pay_${this.#options.newId()}`
    const { currency } = asked
    const state = { locked: asked.amount, balance: found.balance }
    return {
      id,
      scheme: 'token',
      currency,
      expiresAt: found.expiresAt,
      get locked() {
        return state.locked
      },
      get balance() {
        return state.balance
      },
      extend: async (more) => {
        const said = await this.#api.ask('PATCH', `lock/${encodeURIComponent(lock)}`, { amount: formatAmount(more) })
        const whole = said.kind === 'done' ? amountOf(said.body, 'lockedAmount', 'lockedAmountDollars') : undefined
        // A ledger that does not say how much is locked now says at least that it did what was asked.
        if (said.kind !== 'done' || (whole !== undefined && whole < state.locked + more)) return false
        state.locked += more
        if (state.balance !== undefined) state.balance -= more
        return true
      },
      settle: (amount, description) => {
        const back = state.locked - amount
        if (state.balance !== undefined) state.balance += back
        return this.#settlement(asked, { id, lock, amount, description })
      },
    }
  }

  #settlement(
    { principal, currency, agent, response }: Asked,
    { id, lock, amount, description }: { id: string; lock: string; amount: bigint; description: string | undefined },
  ): Settlement {
    if (amount === 0n) return { operations: [], done: () => this.#release(lock) }
    const { now } = this.#options
    const pending: Pending = { id, tenant: principal.tenant, lock, amount: `${amount}`, currency, agent, response, at: now() }
    return { operations: [], done: () => undefined, outside: () => this.#pay(pending, description) }
  }

  async #pay(pending: Pending, description: string | undefined): Promise<Slot> {
    const { store } = this.#options
    const { id, currency } = pending
    this.#running.add(id)
    try {
      // Written first: after a crash nobody else knows that money was to move.
      const index = [[OUTBOX, String(pending.at).padStart(16, '0')] as const]
      await store.set(keyOf(pending), pending as unknown as Json, { index, ttlMs: KEPT_MS, sync: true })
      let outcome: Outcome = 'unknown'
      for (let turn = 0; turn < TRIES && outcome === 'unknown'; turn++)
        outcome = await this.#settle(pending, { description, again: turn > 0 })
      if (outcome !== 'unknown') await store.delete(keyOf(pending))
      if (typeof outcome === 'object') throw new UampError('payment_required', outcome.message, { details: { reason: outcome.refused } })
      if (outcome === 'unknown') this.#later()
      const state = outcome === 'unknown' ? 'pending' : 'settled'
      return { payment_id: id, network: this.#network, amount: formatAmount(BigInt(pending.amount)), currency, state }
    } finally {
      this.#running.delete(id)
    }
  }

  /** `again`: it waits since before, and the log has why. */
  async #settle(
    { id, lock, amount: text, agent, response }: Pending,
    { description, again = false }: { readonly description?: string | undefined; readonly again?: boolean } = {},
  ): Promise<Outcome> {
    const amount = BigInt(text)
    const said = await this.#api.ask('POST', 'settle', {
      lockId: lock,
      amount: formatAmount(amount),
      description: description ?? `An answer of ${agent}`,
      chargeType: 'agent_fee',
      release: true,
      key: id,
    })
    if (said.kind === 'unknown') {
      if (!again) this.#warn('settle a payment', said)
      return 'unknown'
    }
    const charged = said.kind === 'done' ? amountOf(said.body, 'charged', 'chargedAmount') : undefined
    if (said.kind === 'done' && said.body['success'] !== false && (charged === undefined || charged === amount)) return 'settled'
    const { log } = this.#options
    const told = charged === undefined ? {} : { charged: formatAmount(charged) }
    log('error', 'The ledger elsewhere did not settle a payment as it was asked to', { payment: id, lock, response, ...told })
    if (said.kind === 'refused') this.#release(lock)
    return refused('payment_failed', 'The ledger of the payment token did not settle the payment')
  }

  /** A lock that nobody releases ends by itself there, so it is enough to try. */
  #release(lock: string): void {
    void this.#api.ask('POST', 'settle', { lockId: lock, amount: '0.00', release: true, key: `release_${lock}`.slice(0, 128) })
  }

  #later(): void {
    if (this.#closed || this.#timer !== undefined) return
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      void this.#retry()
    }, this.#pause(this.#failures++))
    ;(this.#timer as { unref?: () => void }).unref?.()
  }

  async #retry(): Promise<void> {
    const { store, log } = this.#options
    let open = 0
    let isUnread = false
    try {
      for (let after: string | undefined; !this.#closed;) {
        const page = await store.list(OUTBOX, { limit: PAGE, ...(after !== undefined && { after }) })
        for (const { value } of page.items) {
          const pending = value as unknown as Pending
          if (this.#closed || this.#running.has(pending.id)) continue
          if ((await this.#settle(pending, { again: open > 0 })) === 'unknown') open++
          else await store.delete(keyOf(pending))
        }
        if ((after = page.next) === undefined) break
      }
    } catch (error) {
      isUnread = true
      if (!this.#closed) log('error', 'Payments that are to be settled elsewhere could not be read', { error })
    }
    if (open > 0 && !this.#closed) log('warn', 'Payments wait to be settled elsewhere', { network: this.#network, payments: open })
    if (open > 0 || isUnread) this.#later()
    else this.#failures = 0
  }

  /** What a payer is told. Why it failed is for the operator alone: the answer may repeat the token. */
  #failed(what: string, said: Said): Refusal {
    const code = said.kind === 'refused' ? codeOf(said.body) : ''
    if (code.includes('insufficient')) return refused('insufficient_balance', 'The payment token holds too little')
    if (code.includes('expired')) return refused('token_expired', 'The payment token has expired')
    if (code.includes('token')) return refused('token_invalid', 'The payment token is not valid')
    this.#warn(what, said)
    return refused('payment_failed', 'The ledger of the payment token could not be asked')
  }

  #warn(what: string, said: Said): void {
    const reason =
      said.kind === 'unknown' ? UampError.from(said.cause).message : said.kind === 'refused' ? `status ${said.status}` : 'its answer'
    this.#options.log('warn', `The ledger elsewhere could not ${what}`, { network: this.#network, reason })
  }
}

function keyOf({ tenant, id }: Pending): string {
  return storeKey(tenant, OUTBOX, id)
}

function refused(code: Refusal['refused'], message: string): Refusal {
  return { refused: code, message }
}

function tooLittle({ amount, currency }: Asked): Refusal {
  return refused('insufficient_balance', `${formatAmount(amount)} ${currency} are needed, and the token holds less`)
}

function timeIn(value: unknown): number | undefined {
  const time =
    typeof value === 'number' ? (value < 1e12 ? value * 1000 : value) : typeof value === 'string' ? Date.parse(value) : Number.NaN
  return Number.isFinite(time) ? time : undefined
}
