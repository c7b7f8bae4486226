import { accountOf } from '../../src/payments/accounts.ts'
import type { Ledger } from '../../src/payments/ledger.ts'
import { formatAmount, parseAmount } from '../../src/protocol/money.ts'

interface Wanted {
  readonly agents?: readonly string[]
  readonly maxDepth?: number
  readonly ttlMs?: number
}

/** The money of a server: makes tokens, and tells what is where. */
export function moneyOf(ledger: Ledger) {
  const balance = async (id: string): Promise<string> => formatAmount((await ledger.accounts.get('default', id)).available)
  return {
    /** A token that holds this much. */
    async token(amount: string, { agents = ['*'], maxDepth = 3, ttlMs = 600_000 }: Wanted = {}) {
      const { token, text } = await ledger.tokens.issue({
        tenant: 'default',
        owner: 'payer',
        agents,
        amount: parseAmount(amount) ?? 0n,
        currency: 'USD',
        ttlMs,
        maxDepth,
        source: accountOf.outside('USD'),
      })
      const id = accountOf.token(token.id)
      return {
        token,
        text,
        left: () => balance(id),
        locked: async () => formatAmount((await ledger.accounts.get('default', id)).locked),
      }
    },
    earned: (agent: string) => balance(accountOf.agent(agent, 'USD')),
  }
}
