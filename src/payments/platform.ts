import { formatAmount } from '../protocol/money.ts'
import { storeKey } from '../core/basics/store-key.ts'
import type { HttpClient } from '../core/ports/http.ts'
import type { Asked, Authorisation, Offer, Refusal } from '../core/ports/payments.ts'
import type { Store } from '../core/ports/store.ts'
import type { Logger } from '../core/ports/transport.ts'
import { UampError } from '../protocol/errors.ts'
import type { Json, Slot } from '../protocol/json.ts'
import type { Payment } from '../protocol/payment.ts'
import { backoff } from '../wire/backoff.ts'
import type { PaymentMethod } from './method.ts'
import { amountOf, answered, codeOf, PlatformApi, type Said } from './platform-api.ts'
import type { PaymentFacts } from './underway.ts'

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

/** What is to be settled for a lock elsewhere, until its outcome is known and for some time after that. Nothing of its token is in it. */
interface Pending {
  readonly id: string
  readonly state: 'authorised' | 'settling' | 'settled' | 'released'
  readonly tenant: string
  readonly lock: string
  /** A whole number of 10⁻⁹ units, as text. While the agent still works, and if it is never paid, 0: the lock is then released. */
  readonly amount: string
  readonly currency: string
  readonly principal: string
  readonly agent: string
  readonly session: string
  readonly response: string
  readonly question: string
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
  /** Locks that a turn of this process holds, and settlements that a response waits for. */
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

  /** Ends the locks that the last run left, and goes on with its settlements, until `signal` aborts. */
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

  readonly unsettled = async (): Promise<number> => {
    const open = await this.#options.store.count(OUTBOX)
    // What running turns hold waits for nothing.
    return Math.max(0, open - this.#running.size)
  }

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
    if (waiting >= MOST_WAITING) return this.#failed('sell anything', { kind: 'unknown', why: `${waiting} payments wait for it` })
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
      return this.#failed('lock money', { kind: 'unknown', why: 'Its answer names no lock' })
    }
    if (given < amount) {
      this.#release(lockId)
      return this.#failed('lock money', { kind: 'unknown', why: 'It locked less than was asked for' })
    }
    return this.#lock(asked, lockId, { expiresAt: timeIn(expiresAt), balance: balance === undefined ? undefined : balance - amount })
  }

  async #lock(asked: Asked, lock: string, found: { expiresAt: number | undefined; balance: bigint | undefined }): Promise<Authorisation> {
    const { now, newId } = this.#options
    const id = `pay_${newId()}`
    const { currency, principal, agent, session, response, question } = asked
    const about = { tenant: principal.tenant, principal: principal.id, currency, agent, session, response, question }
    const pending: Pending = { id, state: 'authorised', lock, amount: '0', ...about, at: now() }
    this.#running.add(id)
    try {
      // If this process dies, the next one releases the lock.
      await this.#write(pending)
    } catch (cause) {
      this.#running.delete(id)
      this.#release(lock)
      throw cause
    }
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
        if (amount === 0n) return { operations: [], done: () => void this.#giveBack(pending) }
        let isAsked = false
        return {
          operations: [],
          // Another payment of the same response has failed before this one was settled.
          done: () => void (isAsked || this.#giveBack(pending)),
          outside: () => {
            isAsked = true
            return this.#pay({ ...pending, state: 'settling', amount: `${amount}` }, description)
          },
        }
      },
    }
  }

  async #write(pending: Pending, sync = false): Promise<void> {
    const index = [[OUTBOX, String(pending.at).padStart(16, '0')] as const]
    await this.#options.store.set(keyOf(pending), pending as unknown as Json, { index, ttlMs: KEPT_MS, sync })
  }

  /** Ends a lock that nothing is taken of. What cannot be told now is told later. */
  async #giveBack(pending: Pending): Promise<void> {
    const { log } = this.#options
    try {
      const outcome = await this.#settle(pending)
      if (outcome === 'unknown') this.#later()
      else await this.#decided(pending, outcome)
    } catch (error) {
      if (!this.#closed) log('error', 'A lock elsewhere could not be released', { error })
    } finally {
      this.#running.delete(pending.id)
    }
  }

  async #pay(pending: Pending, description: string | undefined): Promise<Slot> {
    const { id, currency } = pending
    try {
      // Written first: after a crash nobody else knows that money was to move.
      await this.#write(pending, true)
      let outcome: Outcome = 'unknown'
      for (let turn = 0; turn < TRIES && outcome === 'unknown'; turn++)
        outcome = await this.#settle(pending, { description, again: turn > 0 })
      if (outcome !== 'unknown') await this.#decided(pending, outcome)
      if (typeof outcome === 'object') throw new UampError('payment_required', outcome.message, { details: { reason: outcome.refused } })
      if (outcome === 'unknown') this.#later()
      const state = outcome === 'unknown' ? 'pending' : 'settled'
      return { payment_id: id, network: this.#network, amount: formatAmount(BigInt(pending.amount)), currency, state }
    } finally {
      this.#running.delete(id)
    }
  }

  /** A payment that has moved can still be looked at, and one that its payer was told of although it never will. */
  #decided(pending: Pending, outcome: Exclude<Outcome, 'unknown'>): Promise<unknown> {
    const { store } = this.#options
    if (pending.amount === '0') return store.delete(keyOf(pending))
    const state = outcome === 'settled' ? 'settled' : 'released'
    return store.set(keyOf(pending), { ...pending, state } as unknown as Json, { ttlMs: KEPT_MS })
  }

  async find(tenant: string, id: string): Promise<PaymentFacts | undefined> {
    const found = (await this.#options.store.get(keyOf({ tenant, id })))?.value as unknown as Pending | undefined
    if (!found) return undefined
    const { state, amount, currency, principal, agent, session, response, question, at } = found
    return { id, state, amount: BigInt(amount), currency, principal, agent, session, response, question, at }
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
    // A lock that nothing is taken of has ended already.
    if (amount === 0n && said.kind === 'refused') return 'settled'
    const charged = said.kind === 'done' ? amountOf(said.body, 'charged', 'chargedAmount') : undefined
    if (said.kind === 'done' && said.body['success'] !== false && (charged === undefined || charged === amount)) return 'settled'
    const { log } = this.#options
    const told = charged === undefined ? {} : { charged: formatAmount(charged) }
    const about = { payment: id, lock, response, reason: reasonOf(said), ...told }
    log('error', 'The ledger elsewhere did not settle a payment as it was asked to', about)
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
          const outcome = await this.#settle(pending, { again: open > 0 })
          if (outcome === 'unknown') open++
          else await this.#decided(pending, outcome)
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
    if (said.kind === 'refused') return refused('payment_failed', 'The ledger of the payment token does not take it for this agent')
    return refused('payment_failed', 'The ledger of the payment token cannot be asked now: try again later')
  }

  #warn(what: string, said: Said): void {
    this.#options.log('warn', `The ledger elsewhere could not ${what}`, { network: this.#network, reason: reasonOf(said) })
  }
}

/** For the operator. */
function reasonOf(said: Said): string {
  if (said.kind === 'unknown') return said.why
  return said.kind === 'refused' ? answered(said.status, said.body) : 'Its answer says something else'
}

function keyOf({ tenant, id }: Pick<Pending, 'tenant' | 'id'>): string {
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
