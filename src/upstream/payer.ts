import type { Turn } from '../core/ports/agent.ts'
import { UampError } from '../protocol/errors.ts'
import type { Draft } from '../protocol/events.ts'
import type { Slot } from '../protocol/json.ts'
import { formatAmount, parseAmount } from '../protocol/money.ts'
import type { Payment, PaymentRequirements } from '../protocol/payment.ts'
import { uampIn } from '../protocol/records.ts'
import type { Declined, Invoice, Wallet } from '../protocol/wallet.ts'
import { Purse, takenBy, takenIn, type Taken } from '../wire/purse.ts'

/** Pays a remote agent with money that is split off what the caller paid with. */
export interface CallersMoney {
  readonly from: 'caller'
  /** The most that one answer may cost: `0.05`. Without it, as much as the caller's token holds. */
  readonly perCall?: string | undefined
  /** Default: `USD`. */
  readonly currency?: string | undefined
}

/** Who pays a remote agent. Without it, whoever asks is asked. */
export type RemoteWallet = Wallet | CallersMoney

export interface PayerOptions {
  /** The agent is offered through this server, which takes the money for it. */
  readonly isHosted?: boolean
  /** Its name here. */
  readonly name: string
  readonly url?: string | undefined
  /** Its name there. */
  readonly agent?: string | undefined
  readonly wallet?: RemoteWallet | undefined
}

interface Demand {
  readonly requirements: PaymentRequirements
  readonly extra?: Slot | undefined
}

/** What this server paid to another, as the end of an answer tells it. */
type PaidTo = Taken & { readonly agent: string }

const SHOWN = 300

/** About the money of whoever pays the remote agent. */
const ABOUT_MONEY: ReadonlySet<string> = new Set(['payment.accepted', 'payment.balance', 'payment.error'])

/** Pays a remote agent for one answer: from a wallet, or with what our client gives for it. */
export class Payer {
  readonly #turn: Turn
  readonly #options: PayerOptions
  readonly #purse: Purse | undefined
  readonly #giveBack: (() => Promise<void>)[] = []
  #agent: string
  #approvals = 0
  /** Our client paid itself, so it is told what became of that. */
  #relayed = false
  #taken: readonly (Taken & Slot)[] | undefined
  /** The remote agent has said what it took. */
  #isTold = false

  constructor(turn: Turn, options: PayerOptions) {
    const { wallet, name, url, agent = agentAt(url) ?? name } = options
    this.#turn = turn
    this.#options = options
    this.#agent = agent
    const paying = wallet && ('pay' in wallet ? wallet : this.#callers(wallet))
    const call = `${turn.id}/${crypto.randomUUID()}`
    const agentNow = (): string => this.#agent
    this.#purse =
      paying &&
      new Purse({
        wallet: paying,
        call,
        url,
        get agent() {
          return agentNow()
        },
        approve: (question) => this.#approve(question),
      })
  }

  /** The payment for a demand. Rejects with `payment_required` if nobody pays. */
  async pay({ requirements, extra }: Demand): Promise<Payment> {
    if (!this.#purse) {
      const question = { requirements, ...(extra && { extra }) }
      if (this.#options.isHosted) {
        await this.#turn.ask('payment.required', question)
        // The money is here. The token of whoever paid is nobody else's.
        return { scheme: 'paid' }
      }
      this.#relayed = true
      return (await this.#turn.ask('payment.required', question, { relay: true })).payment
    }
    const payment = await this.#purse.pay({ requirements, extra }, this.#turn.signal)
    this.#turn.signal.throwIfAborted()
    if (!('declined' in payment)) return payment
    const { declined, code = 'payment_declined', cause } = payment
    const wanted = `${requirements.amount} ${requirements.currency}`.slice(0, SHOWN)
    // Its details name no amount: whoever asks us is not to pay this here.
    throw new UampError('payment_required', `"${this.#options.name}" wants ${wanted} and is not paid: ${declined.slice(0, SHOWN)}`, {
      details: { reason: code },
      ...(cause !== undefined && { cause }),
    })
  }

  /** What our client is told of it. What is about our own money stays here. */
  told(draft: Draft | undefined): Draft | undefined {
    if (draft?.type === 'session.created' && draft.agent !== undefined) this.#agent = draft.agent
    if (!draft || this.#relayed) return draft
    if (ABOUT_MONEY.has(draft.type)) return undefined
    this.hear(draft)
    if (draft.type !== 'response.done') return draft
    const { extensions } = draft.response
    const { payments: _p, receipts: _r, handed_on: _h, ...uamp } = uampIn(extensions)
    const told = this.paid
    if (!told && Object.keys(uamp).length === Object.keys(uampIn(extensions)).length) return draft
    return { ...draft, response: { ...draft.response, extensions: { ...extensions, uamp: { ...uamp, ...told?.uamp } } } }
  }

  /** Remembers what the end of an answer says about payments. */
  hear(event: Draft): void {
    const taken = takenBy(event)
    if (taken) this.hearTaken(taken)
  }

  hearTaken(taken: readonly Taken[]): void {
    this.#taken = taken as readonly (Taken & Slot)[]
    this.#isTold = true
  }

  /** As `hearTaken`, of metadata that may say it. */
  hearMetadata(metadata: unknown): void {
    const taken = takenIn(metadata)
    if (taken) this.hearTaken(taken)
  }

  /** For the end of our answer: what was paid to the remote agent. Undefined: nothing. */
  get paid(): { readonly uamp: Readonly<Record<string, readonly PaidTo[]>> } | undefined {
    if (this.#relayed) return undefined
    const given = this.#purse?.given.map(({ invoice, payment }) => ({
      scheme: payment.scheme,
      amount: payment.amount ?? invoice.requirements.amount,
      currency: invoice.requirements.currency,
    }))
    const list = (this.#isTold ? this.#taken : given) ?? []
    const told = list.map((each) => ({ agent: this.#options.name, ...each }))
    const { wallet } = this.#options
    // Handed on, it is the caller who has paid it.
    const name = wallet && !('pay' in wallet) ? 'handed_on' : 'paid_to'
    return told.length > 0 ? { uamp: { [name]: told } } : undefined
  }

  /** Settles with the wallet, which nobody waits for, and gives back what was handed on. */
  async end(): Promise<void> {
    void this.#purse?.end(this.#taken)
    await Promise.all(this.#giveBack.splice(0).map((back) => back().catch(() => undefined)))
  }

  async #approve(message: string): Promise<boolean> {
    const key = `pay ${this.#options.name} #${++this.#approvals}`
    const { approved } = await this.#turn.ask('x.approval.request', { message }, { key })
    return approved
  }

  #callers({ perCall, currency = 'USD' }: CallersMoney): Wallet {
    const most = perCall === undefined ? undefined : parseAmount(perCall)
    if (perCall !== undefined && most === undefined) throw new TypeError(`perCall is a text such as "0.05", but not ${perCall}`)
    let spent = 0n
    return {
      pay: async ({ requirements }: Invoice): Promise<Payment | Declined> => {
        const amount = parseAmount(requirements.amount)
        if (amount === undefined) return { declined: 'it wants no amount that can be paid' }
        if (requirements.currency !== currency) return { declined: `it wants ${requirements.currency} and not ${currency}` }
        if (most !== undefined && spent + amount > most) {
          const declined = `${formatAmount(spent + amount)} is more than an answer may cost, ${formatAmount(most)}`
          return { declined, code: 'budget_exceeded' }
        }
        spent += amount
        const given = await this.#handOn(requirements)
        if ('declined' in given) spent -= amount
        return given
      },
    }
  }

  /** The caller's own words if it is their money that does not suffice, and not ours. */
  async #handOn({ amount, currency }: PaymentRequirements): Promise<Payment | Declined> {
    try {
      const { payment, giveBack } = await this.#turn.handOn({ amount, currency, agent: this.#agent })
      this.#giveBack.push(() => giveBack())
      return payment
    } catch (thrown) {
      this.#turn.signal.throwIfAborted()
      const { code, message } = UampError.from(thrown)
      if (code !== 'payment_required' && code !== 'forbidden' && code !== 'not_supported') throw thrown
      return { declined: message }
    }
  }
}

/** The agent that an address names: `https://host/agents/name`. */
function agentAt(url: string | undefined): string | undefined {
  const [, name] = /\/agents\/([^/?#]+)/.exec(url ?? '') ?? []
  try {
    return name === undefined ? undefined : decodeURIComponent(name)
  } catch {
    return undefined
  }
}
