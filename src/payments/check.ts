import { formatAmount } from '../core/basics/money.ts'
import type { Store } from '../core/ports/store.ts'
import type { Accounts, Movement } from './accounts.ts'

/** How many problems are told. */
const MOST = 100

export interface LedgerReport {
  readonly accounts: number
  readonly movements: number
  /** What all accounts have together, the outside included, by currency: zero, if the ledger is right. */
  readonly sums: Readonly<Record<string, string>>
  /** What the outside has put in, by currency. */
  readonly inside: Readonly<Record<string, string>>
  readonly openLocks: number
  readonly problems: readonly string[]
}

/** Adds up every movement, and compares the sums with what the ledger says of its accounts. */
export async function checkLedger(store: Store, accounts: Accounts): Promise<LedgerReport> {
  const balances = new Map<string, { tenant: string; id: string; currency: string; balance: bigint }>()
  const problems: string[] = []
  const tell = (problem: string): unknown => problems.length < MOST && problems.push(problem)
  let [movements, openLocks] = [0, 0]
  const change = (move: Movement & { tenant: string }, id: string, amount: bigint): void => {
    const key = `${move.tenant} ${id}`
    const known = balances.get(key) ?? { tenant: move.tenant, id, currency: move.currency, balance: 0n }
    if (known.currency !== move.currency) tell(`${id} has movements in ${known.currency} and in ${move.currency}`)
    balances.set(key, { ...known, balance: known.balance + amount })
  }
  for await (const { type, key } of store.scan()) {
    const [tenant = '', kind] = key.split('/')
    if (type !== 'record' || (kind !== 'money' && kind !== 'money-lock')) continue
    const value = (await store.get(key))?.value as unknown as (Movement & { state?: string }) | undefined
    if (!value) continue
    if (kind === 'money-lock') {
      if (value.state === 'open') openLocks++
      continue
    }
    movements++
    const amount = BigInt(value.amount)
    if (amount <= 0n) tell(`${value.id} moves ${value.amount}`)
    const move = { ...value, tenant: decodeURIComponent(tenant) }
    change(move, value.from, -amount)
    change(move, value.to, amount)
  }
  const [sums, inside] = [new Map<string, bigint>(), new Map<string, bigint>()]
  for (const { tenant, id, currency, balance } of balances.values()) {
    sums.set(currency, (sums.get(currency) ?? 0n) + balance)
    const isOutside = id.startsWith('outside:')
    if (isOutside) inside.set(currency, (inside.get(currency) ?? 0n) - balance)
    const account = await accounts.get(tenant, id)
    if (account.balance === balance && (isOutside || balance >= 0n)) continue
    // Movements may have been written since they were read above, so those of this account are read again.
    const before = account.seq
    const now = await accounts.sum(tenant, id)
    if (account.isBusy || account.seq !== before) continue
    if (now < 0n && !isOutside) tell(`${id} has ${formatAmount(now)} ${currency}`)
    if (now === account.balance) continue
    tell(`${id} has ${formatAmount(now)} ${currency} by its movements, but ${formatAmount(account.balance)} in its account`)
  }
  for (const [currency, sum] of sums) if (sum !== 0n) tell(`All accounts have ${formatAmount(sum)} ${currency} together, and not 0`)
  return { accounts: balances.size, movements, sums: shown(sums), inside: shown(inside), openLocks, problems }
}

function shown(amounts: ReadonlyMap<string, bigint>): Record<string, string> {
  return Object.fromEntries([...amounts].map(([currency, amount]) => [currency, formatAmount(amount)]))
}
