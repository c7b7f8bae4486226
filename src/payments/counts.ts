import type { Authorisation, Refusal } from '../core/ports/payments.ts'

/** What operators watch: how payments fared since the start. */
export class PaymentCounts {
  /** By `accepted`, or by the reason of the refusal. */
  readonly outcomes = new Map<string, number>()
  /** How many problems the last check of the ledger has found. */
  problems = 0

  /** Counts what became of a payment, and hands it on. */
  readonly noted = <T extends Authorisation | Refusal | undefined>(found: T): T => {
    if (!found) return found
    const outcome = 'refused' in found ? found.refused : 'accepted'
    this.outcomes.set(outcome, (this.outcomes.get(outcome) ?? 0) + 1)
    return found
  }
}
