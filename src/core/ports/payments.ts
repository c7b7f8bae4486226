import type { Payment, PaymentScheme } from '../../protocol/payment.ts'
import type { Slot } from '../../protocol/json.ts'
import type { Principal } from './access.ts'
import type { ToolPrice } from './skill.ts'
import type { Operation } from './store.ts'

/**
 * Where agents' money comes from. The server's own ledger implements it, and so can a company's. Amounts are whole numbers of 10⁻⁹ of
 * the currency's unit.
 */
export interface Payments {
  /** The ways to pay this amount, for the question `payment.required`. */
  offer(asked: Asked): Offer
  /**
   * Verifies a payment and locks the amount, so that nothing else can spend it. Without a payment, the account of whoever asks pays;
   * undefined then means that there is no such account. Answers at once where nothing has to be looked up.
   */
  authorise(asked: Asked, payment: Payment): Promise<Authorisation | Refusal> | Authorisation | Refusal
  authorise(asked: Asked, payment: undefined): Promise<Authorisation | Refusal | undefined> | Authorisation | Refusal | undefined
  /** Splits money off a payment, for another agent. Absent: payments cannot be handed on. */
  handOn?(asked: Asked, payment: Payment, agent: string): Promise<HandedOn | Refusal>
  /** Whether a token is one of this ledger. Such a token is not handed to other servers. */
  isOwn(payment: Payment): Promise<boolean> | boolean
  /** Takes one of the calls that are free for whoever asks. Undefined: none is left. Settled with nothing, the call is given back. */
  takeFree(asked: Asked, free: FreeQuota): Promise<Authorisation | undefined>
  /** Writes the end of a payment for a response that is not stored itself. */
  write(operations: readonly Operation[]): Promise<void>
}

/** Money for another agent, split off what somebody pays with. */
export interface HandOnRequest {
  /** The name of the agent that is to be paid with it. */
  readonly agent: string
  readonly amount: string
  /** Default: `USD`. */
  readonly currency?: string | undefined
}

export interface HandedOn {
  /** Pays the other agent. */
  readonly payment: Payment
  /** Returns what the other agent has not taken. */
  giveBack(): Promise<void>
}

export interface FreeQuota {
  readonly calls: number
  readonly per: 'hour' | 'day' | 'month'
}

/** What has to be paid, by whom, and for what. */
export interface Asked {
  readonly principal: Principal
  readonly agent: string
  readonly session: string
  /** The turn that it is paid for. */
  readonly turn: string
  readonly response: string
  /** Which question of the turn it answers. */
  readonly question: string
  readonly amount: bigint
  readonly currency: string
  /** The client was told one sum for all charges of its request, so a payment that cannot be divided may be of more than this one. */
  readonly isPart?: boolean | undefined
}

export interface Offer {
  readonly schemes: readonly PaymentScheme[]
  /** What some schemes need beside that: `x402`. */
  readonly extra?: Slot | undefined
}

/** Money that is locked for a turn. It ends with `settle`, exactly once. */
export interface Authorisation {
  /** Names the payment: `payment_id` of `payment.accepted`. */
  readonly id: string
  readonly scheme: string
  readonly currency: string
  readonly locked: bigint
  /** What is left to spend beside the lock. Undefined: nobody here knows. */
  readonly balance: bigint | undefined
  /** When the money can no longer be spent, in milliseconds since 1970. */
  readonly expiresAt: number | undefined
  /** Locks more of the same money. False: there is not enough of it. */
  extend(amount: bigint): boolean | Promise<boolean>
  /** Ends the lock: takes `amount` of it, and gives the rest back. */
  settle(amount: bigint, description?: string): Settlement
}

export interface Settlement {
  /** For the transaction that ends the response. */
  readonly operations: readonly Operation[]
  /** Called when they are stored, or with the failure to store them. */
  done(failure?: unknown): void
  /**
   * Moves money elsewhere, before the end of the response is told. It rejects if the money did not move, with an error for the client.
   * Resolves with what the payer gets as a receipt.
   */
  readonly outside?: (() => Promise<Slot | undefined>) | undefined
  /** What is taken if this money cannot be divided. Default: the amount that was asked for. */
  readonly taken?: bigint | undefined
}

/** Why a payment is not taken (UAMP events §7.2). */
export interface Refusal {
  readonly refused: 'insufficient_balance' | 'token_expired' | 'token_invalid' | 'payment_failed' | 'rate_limited' | 'mandate_revoked'
  /** For the payer. Never repeats the payment. */
  readonly message: string
  readonly balance?: bigint | undefined
  /** False: no other payment will do either. Default: true. */
  readonly canRetry?: boolean | undefined
}

/** What an agent costs. All amounts are texts such as `0.05`. */
export interface AgentPrice {
  /** Default: `USD`. */
  readonly currency?: string | undefined
  /** For each response. */
  readonly call?: string | undefined
  /** For a million tokens. Cached ones cost the same as `input` unless they have a price. */
  readonly input?: string | undefined
  readonly cached?: string | undefined
  readonly output?: string | undefined
  /** For a second of audio, in both directions. */
  readonly audioSecond?: string | undefined
  /** Locked before the agent runs, if it is paid by usage. Default: 0.01. What is not used is given back. */
  readonly reserve?: string | undefined
  /** Calls that cost nothing, for each principal. Tools with a price of their own cost it in any case. */
  readonly free?: FreeQuota | undefined
  /** What calls of its tools cost, by their names, beside what an answer costs. A tool's own price counts first. */
  readonly tools?: Readonly<Record<string, string | ToolPrice>> | undefined
}

/** A charge that an agent made. */
export interface Charged {
  /** Says what it cost in the end, at most what was charged. Without it, all of it. */
  settle(amount: string): void
}

export interface ChargeRequest {
  readonly amount: string
  /** Default: `USD`. */
  readonly currency?: string | undefined
  /** Shown to whoever pays. */
  readonly reason?: string | undefined
  /** Names the charge, so that a turn that is run again finds its payment. Default: its number in the turn. */
  readonly key?: string | undefined
  readonly timeoutMs?: number | undefined
}
