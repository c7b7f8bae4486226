import type { Wire } from '../../support/raw.ts'

/** What a client was told of one answer, or of the part of it that it has heard so far. */
export interface Told {
  /** All that was said since it was asked, in all parts of the answer. */
  text: string
  /** `done`, `asked`, `cancelled`, `error <code>`. */
  end: string
  /** The status, where HTTP has refused the request. */
  status?: number | undefined
  /** What has to be paid. */
  demand?: Demand | undefined
  /** The events about payments, and `text` for words, in order; undefined where the protocol has no place for them. */
  events?: Wire[] | undefined
  /** The payments that the end tells, where the protocol's end has a place for them. */
  paid?: Wire[] | undefined
}

export interface Demand {
  readonly amount: string
  readonly currency: string
  /** `topup`, in the middle of an answer. */
  readonly action?: string | undefined
  /** Why the payment before was refused. */
  readonly error?: string | undefined
}

/** Where a client puts the money that it pays with in advance. */
type Way = string

export interface Paying {
  readonly token: string
  readonly way: Way
}

export interface Client {
  /** Asks, and reads until the answer is over or wants money. */
  say(prompt: string, paying?: Paying): Promise<Told>
  /** Pays what was asked for, and reads on. */
  pay(token: string): Promise<Told>
  /** Says no to what was asked for. Undefined: whoever does not pay has said no, and nothing waits for it. */
  decline?: (() => Promise<Told>) | undefined
  /** Stops the answer while its question is open. */
  cancel?: (() => Promise<Told>) | undefined
  /** Pays where nobody asked for it. Gives the error. */
  payNobody?: ((token: string) => Promise<string>) | undefined
  /** Goes away in the middle of an answer. */
  vanish(): void | Promise<void>
}

export interface Driver {
  readonly name: string
  readonly ways: readonly Way[]
  /** Each request is whole: what is paid for is asked for again, and said again. */
  readonly stateless?: true
  /** Nothing is heard before the end. */
  readonly silent?: true
  /** How a request with two payments that differ is answered, over HTTP. */
  readonly twoHeaders?: (url: string, tokens: readonly [string, string]) => Promise<number>
  open(stage: Stage): Promise<Client>
}

export interface Stage {
  readonly url: string
  after(task: () => void): void
}

/** The demand in the first of the ways to pay. */
export function demandIn(accepts: readonly Wire[] | undefined): Demand | undefined {
  const first = accepts?.find(({ scheme }) => scheme === 'token')
  return first && { amount: first.amount, currency: first.currency, action: first.extra?.action, error: first.extra?.error?.code }
}

export const demandOf = ({ requirements, extra }: Wire): Demand => ({
  amount: requirements.amount,
  currency: requirements.currency,
  action: extra?.action,
  error: extra?.error?.code,
})
