import type { Registry } from 'prom-client'
import type { PaymentGauges } from '../metrics.ts'

/** What operators want to be woken for: payments that are refused or wait, and a ledger that does not add up. */
export async function paymentMetrics(registry: Registry, payments: PaymentGauges): Promise<void> {
  const { counts } = payments
  const { Counter, Gauge } = (await import('prom-client')).default
  const registers = [registry]
  new Counter({
    name: 'uamp_payments_total',
    help: 'Payments by what became of them: accepted, or why they were refused',
    labelNames: ['outcome'],
    registers,
    collect() {
      this.reset()
      for (const [outcome, count] of counts.outcomes) this.inc({ outcome }, count)
    },
  })
  new Gauge({
    name: 'uamp_payments_unsettled',
    help: 'Payments that wait to be settled elsewhere',
    registers,
    async collect() {
      this.set(await payments.unsettled())
    },
  })
  new Gauge({
    name: 'uamp_ledger_problems',
    help: 'Problems that the last check of the ledger has found',
    registers,
    collect() {
      this.set(counts.problems)
    },
  })
}
