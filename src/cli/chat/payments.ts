import { budget, tokenWallet, type EventOf, type Payment, type Wallet } from '../../client/node.ts'
import type { ClientDraft } from '../../client/drafts.ts'
import type { Capabilities } from '../../protocol/capabilities.ts'
import { fieldsOf, uampIn } from '../../protocol/json.ts'
import { DECLINED, type Declined } from '../../protocol/wallet.ts'
import { Purse, takenBy } from '../../wire/purse.ts'
import type { Console } from './input/console.ts'
import type { Page } from './page.ts'

type Demand = EventOf<'payment.required'>

export interface PaymentsOptions {
  readonly console: Console
  readonly page: Page
  /** The token that pays. Undefined: a person is asked for one. */
  readonly token: string | undefined
  /** What the chat may spend without asking: `0.10`. */
  readonly budget: string | undefined
}

/** What the user pays in a chat. */
export class ChatPayments {
  readonly #options: PaymentsOptions
  readonly #budget: Wallet | undefined
  #token: string | undefined
  /** The purse of the running response. */
  #purse: { readonly response: string; readonly purse: Purse } | undefined

  constructor(options: PaymentsOptions) {
    const { token, budget: most } = options
    this.#options = options
    this.#token = token
    // One long day: the budget is that of the whole program.
    this.#budget = token === undefined || most === undefined ? undefined : budget(tokenWallet(token), { perDay: most, now: () => 0 })
  }

  /** An aborted question, and one that nobody answers, is a no. */
  async decide(demand: Demand, signal: AbortSignal): Promise<ClientDraft> {
    const paid = await this.#within(demand, signal)
    const payment = paid && !('declined' in paid) ? paid : await this.#ask(demand, { signal, declined: paid })
    return { type: 'payment.submit', event_id: `pay_${demand.event_id}`, payment: payment ?? DECLINED }
  }

  ended(event: EventOf<'response.done' | 'response.cancelled' | 'response.error'>): void {
    if (this.#purse?.response !== event.response_id) return
    void this.#purse?.purse.end(takenBy(event))
    this.#purse = undefined
  }

  /** Undefined: there is no budget. */
  async #within(
    { event_id, response_id: response = event_id, ...demand }: Demand,
    signal: AbortSignal,
  ): Promise<Payment | Declined | undefined> {
    if (!this.#budget) return undefined
    if (this.#purse?.response !== response) this.#purse = { response, purse: new Purse({ wallet: this.#budget, call: response }) }
    return this.#purse.purse.pay({ ...demand, id: event_id }, signal)
  }

  async #ask(
    { requirements, extra }: Demand,
    { signal, declined }: { readonly signal: AbortSignal; readonly declined: Declined | undefined },
  ): Promise<Payment | undefined> {
    const { console, page } = this.#options
    const wanted = `${requirements.amount} ${requirements.currency}`
    const why = requirements.reason === undefined ? '' : ` (${requirements.reason})`
    page.end()
    if (!console.interactive) {
      page.error(`Payment of ${wanted} declined${why}. ${adviceFor(declined)}`)
      return undefined
    }
    const isRefused = extra?.['error'] !== undefined
    const other = this.#token !== undefined && isRefused ? [{ key: 't', label: 'Yes, with another token' }] : []
    const choices = [{ key: 'y', label: 'Yes' }, { key: 'n', label: 'No' }, ...other]
    const at = await console.choose({ text: `Pay ${wanted}?${why}`, choices, first: 1 }, signal)
    if (at === undefined || at === 1) return undefined
    if (this.#token === undefined || at === 2) this.#token = await console.secret('Payment token (it is not shown): ', signal)
    return this.#token === undefined ? undefined : { scheme: 'token', token: this.#token, amount: requirements.amount }
  }
}

function adviceFor(declined: Declined | undefined): string {
  if (!declined) return 'To have this chat pay, give it a token (--pay-token-file or UAMP_PAY_TOKEN) and a --budget'
  return declined.code === 'budget_exceeded' ? 'It is more than is left of the --budget' : declined.declined
}

/** What is left after a paid answer. */
export function balanceText(event: EventOf<'payment.balance'>): string {
  const { balance, currency, low_balance_warning: isLow, estimated_remaining: answers } = event
  const few = answers === undefined ? '' : `: about ${answers} more answers like this one`
  return `${balance} ${currency} left${isLow === true ? `, which is little${few}` : ''}`
}

/** The price that an agent shows, if it has one. */
export function priceText(capabilities: Capabilities | undefined): string | undefined {
  const { price } = uampIn(capabilities?.extensions)
  if (typeof price === 'string') return price
  const { currency = 'USD', call, input, output, audioSecond = fieldsOf(price)['audio_second'] } = fieldsOf(price)
  const rows = [
    [call, 'an answer'],
    [input, 'a million tokens in'],
    [output, 'a million tokens out'],
    [audioSecond, 'a second of audio'],
  ] as const
  const parts = rows.flatMap(([amount, what]) => (typeof amount === 'string' ? [`${amount} ${String(currency)} for ${what}`] : []))
  return parts.length > 0 ? parts.join(', ') : undefined
}
