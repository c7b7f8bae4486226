import { formatAmount, parseAmount } from '../protocol/money.ts'
import type { Asked, HandedOn, Refusal } from '../core/ports/payments.ts'
import type { Operation } from '../core/ports/store.ts'
import { UampError } from '../protocol/errors.ts'
import type { Payment } from '../protocol/payment.ts'
import { accountOf } from './accounts.ts'
import { NOT_OURS, refusalOf, type LedgerMethodOptions } from './ledger-method.ts'

/** How long a turn may use the money that it handed on. */
const LIFE_MS = 3_600_000

interface HandOnParts extends Pick<LedgerMethodOptions, 'accounts' | 'tokens' | 'spending' | 'now'> {
  write(operations: readonly Operation[]): Promise<void>
}

/** Splits a token for another agent off the token that somebody pays with. It may be handed on once less than that one. */
export async function handOn(
  asked: Asked,
  { token: text = '', amount: offered }: Payment,
  { agent, accounts, tokens, spending, now, write }: HandOnParts & { readonly agent: string },
): Promise<HandedOn | Refusal> {
  const { principal, amount } = asked
  const { tenant } = principal
  const found = await tokens.verify(tenant, text)
  if (!found) return NOT_OURS
  await spending.load(asked)
  const refusal = refusalOf(asked, found.token, now()) ?? spending.refusal(asked)
  if (refusal) return refusal
  const most = offered === undefined ? amount : parseAmount(offered)
  if (most === undefined || most < amount) return { refused: 'insufficient_balance', message: 'The payment is for less than this' }
  spending.lock(asked, amount)
  try {
    // After a crash nobody gives the rest back, so the token ends soon by itself.
    const split = await tokens.delegate(found.token, { agents: [agent], amount, expiresAt: now() + LIFE_MS })
    let given: Promise<void> | undefined
    const end = async (): Promise<void> => {
      const { available: left } = await accounts.get(tenant, accountOf.token(split.token.id))
      await tokens.end(split.token)
      const spent = spending.settle(asked, { locked: amount, amount: left < amount ? amount - left : 0n })
      if (spent.operations.length === 0) return spent.done()
      await write(spent.operations).then(
        () => spent.done(),
        (failure: unknown) => spent.done(failure),
      )
    }
    const giveBack = (): Promise<void> => (given ??= end())
    return { payment: { scheme: 'token', token: split.text, amount: formatAmount(amount) }, giveBack }
  } catch (thrown) {
    spending.settle(asked, { locked: amount, amount: 0n })
    const { code, message } = UampError.from(thrown)
    if (code === 'forbidden') return { refused: 'token_invalid', message }
    if (code !== 'payment_required') throw thrown
    return { refused: 'insufficient_balance', message, balance: found.account.available }
  }
}
