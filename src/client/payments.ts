import type { EventOf, ServerEvent } from '../protocol/events.ts'
import { DECLINED, type Declined, type Wallet } from '../protocol/wallet.ts'
import { Purse, takenBy } from '../wire/purse.ts'
import type { ClientDraft } from './drafts.ts'
import { UampClientError } from './errors.ts'

/** Answers whose refusal to pay is remembered until they end. */
const REFUSALS = 64

export interface PaymentsOptions {
  readonly wallet: Wallet
  readonly url: string
  readonly newId: () => string
}

/** What the wallet of a client pays for the answers of one session. */
export class Payments {
  readonly #options: PaymentsOptions
  /** Names the answer that is paid for. */
  #call: string
  /** The payments of one response: a session has one at a time. */
  #purse: { readonly response: string; readonly purse: Purse } | undefined
  readonly #refusals = new Map<string, Declined>()
  #agent: string | undefined

  constructor(options: PaymentsOptions) {
    this.#options = options
    this.#call = options.newId()
  }

  /** The application asks. All that is demanded until it asks again is for one answer, whatever the server calls its responses. */
  asked(): void {
    this.#call = this.#options.newId()
  }

  see(event: ServerEvent): void {
    if (event.type === 'session.created') this.#agent = event.agent
    if (event.type !== 'response.done' && event.type !== 'response.error' && event.type !== 'response.cancelled') return
    const { response_id: id } = event
    if (id === undefined || id !== this.#purse?.response) return
    void this.#purse.purse.end(takenBy(event))
    this.#purse = undefined
  }

  /** The same question has the same answer, also after the client has come back: the server takes it once. */
  async answer({ event_id, response_id, requirements, extra }: EventOf<'payment.required'>, signal: AbortSignal): Promise<ClientDraft> {
    const answered = `pay_${event_id}`
    const response = response_id ?? event_id
    const payment = await this.#purseOf(response).pay({ id: event_id, requirements, extra }, signal)
    if (!('declined' in payment)) return { type: 'payment.submit', event_id: answered, payment }
    this.#refusals.set(response, payment)
    for (const first of this.#refusals.keys()) if (this.#refusals.size > REFUSALS) this.#refusals.delete(first)
    return { type: 'payment.submit', event_id: answered, payment: DECLINED }
  }

  /** Why a response failed, if the wallet did not pay for it. */
  refusal({ response_id, error }: EventOf<'response.error'>): UampClientError | undefined {
    const refused = this.#refusals.get(response_id ?? '')
    this.#refusals.delete(response_id ?? '')
    if (!refused || error.code !== 'payment_required') return undefined
    const { declined, code = 'payment_declined', cause } = refused
    return new UampClientError({ code, message: declined, details: error.details }, cause)
  }

  stop(): void {
    void this.#purse?.purse.end(undefined)
    this.#purse = undefined
  }

  #purseOf(response: string): Purse {
    if (this.#purse?.response === response) return this.#purse.purse
    this.stop()
    const { wallet, url } = this.#options
    const purse = new Purse({ wallet, url, agent: this.#agent, call: this.#call })
    this.#purse = { response, purse }
    return purse
  }
}
