import { parseAmount } from '../../protocol/money.ts'
import type { Payment } from '../../protocol/payment.ts'

/** A payment that the client made in this turn. */
export interface Purse {
  readonly payment: Payment
  /** The most that the client offered. Undefined: as much as is needed. */
  readonly offered: bigint | undefined
  used: bigint
}

export function purseOf(payment: Payment): Purse {
  return { payment, offered: payment.amount === undefined ? undefined : parseAmount(payment.amount), used: 0n }
}

/** Who says how much they pay does not pay more than that. */
export function hasRoom({ offered, used }: Purse, amount: bigint): boolean {
  return offered === undefined || used + amount <= offered
}
