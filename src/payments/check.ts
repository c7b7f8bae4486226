import { formatAmount } from '../protocol/money.ts'
import { nextTurn } from '../core/basics/time.ts'
import type { Store } from '../core/ports/store.ts'
import { accountOf, type Accounts, type Movement } from './accounts.ts'
import { lockKey } from './locks.ts'

/** How many problems are told. */
const MOST = 100
/** So many records are looked at in one go: a large ledger keeps nothing else waiting. */
const SLICE = 32

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

/** Adds up every movement, and compares the sums with what the ledger says of its accounts. `rest` comes between two slices of the work. */
export async function checkLedger(store: Store, accounts: Accounts, rest: () => Promise<void> = nextTurn): Promise<LedgerReport> {
  let looked = 0
  const breathe = (): Promise<void> | undefined => (++looked % SLICE === 0 ? rest() : undefined)
  const balances = new Map<string, { tenant: string; id: string; currency: string; balance: bigint }>()
  const openLockIds = new Set<string>()
  const problems: string[] = []
  const tell = (problem: string): unknown => problems.length < MOST && problems.push(problem)
  let movements = 0
  const change = (move: Movement & { tenant: string }, id: string, amount: bigint): void => {
    const key = `${move.tenant} ${id}`
    const known = balances.get(key) ?? { tenant: move.tenant, id, currency: move.currency, balance: 0n }
    if (known.currency !== move.currency) tell(`${id} has movements in ${known.currency} and in ${move.currency}`)
    balances.set(key, { ...known, balance: known.balance + amount })
  }
  for await (const { type, key } of store.scan()) {
    const [tenant = '', kind] = key.split('/')
    if (type !== 'record' || (kind !== 'money' && kind !== 'money-lock')) continue
    await breathe()
    const value = (await store.get(key))?.value as unknown as (Movement & { state?: string }) | undefined
    if (!value) continue
    if (kind === 'money-lock') {
      if (value.state === 'open') openLockIds.add(`${decodeURIComponent(tenant)} ${accountOf.lock(value.id)}`)
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
    await breathe()
    sums.set(currency, (sums.get(currency) ?? 0n) + balance)
    if (id.startsWith('outside:')) inside.set(currency, (inside.get(currency) ?? 0n) - balance)
    else if (balance < 0n) tell(`${id} has ${formatAmount(balance)} ${currency}`)
    const isEnded = id.startsWith('lock:') && balance > 0n && !openLockIds.has(`${tenant} ${id}`)
    if (isEnded && (await accounts.read(tenant, id)).balance > 0n && !(await isOpen(store, tenant, id))) {
      tell(`${id} has ended, and still has ${formatAmount(balance)} ${currency}`)
    }
    const account = accounts.known(tenant, id) ?? (await accounts.read(tenant, id))
    if (account.isBusy || account.balance === balance) continue
    // It may have moved since, so its movements are added up once more, and count only if there was none meanwhile.
    const { seq } = account
    const sum = (await accounts.read(tenant, id, { fromFirst: true, rest })).balance
    if (account.isBusy || account.seq !== seq || account.balance === sum) continue
    tell(`${id} has ${formatAmount(sum)} ${currency} by its movements, but ${formatAmount(account.balance)} in its account`)
  }
  for (const [currency, sum] of sums) if (sum !== 0n) tell(`All accounts have ${formatAmount(sum)} ${currency} together, and not 0`)
  return { accounts: balances.size, movements, sums: shown(sums), inside: shown(inside), openLocks: openLockIds.size, problems }
}

async function isOpen(store: Store, tenant: string, account: string): Promise<boolean> {
  const lock = (await store.get(lockKey(tenant, account.slice(accountOf.lock('').length))))?.value as { state?: string } | undefined
  return lock?.state === 'open'
}

function shown(amounts: ReadonlyMap<string, bigint>): Record<string, string> {
  return Object.fromEntries([...amounts].map(([currency, amount]) => [currency, formatAmount(amount)]))
}
