import { storeKey } from '../basics/store-key.ts'
import { inventory, type Describe } from './inventory.ts'
import type { Records } from './records.ts'

/** How much of something is stored. Times are in milliseconds; undefined if not known. */
interface Amount {
  readonly count: number
  readonly bytes: number
  readonly oldest: number | undefined
  readonly newest: number | undefined
}

export interface Usage {
  /** By kind: `session`, `turn`, `log` … */
  readonly kinds: Readonly<Record<string, Amount>>
  /** By tenant and principal, the largest first. */
  readonly principals: readonly (Amount & { readonly tenant: string; readonly principal: string; readonly sessions: number })[]
}

/** Counts what is stored. It scans the whole store, in small steps. */
export async function usageOf(records: Records, describe?: Describe): Promise<Usage> {
  const kinds = new Map<string, Amount>()
  const principals = new Map<string, Usage['principals'][number]>()
  for await (const { kind, tenant, owner, bytes, at } of inventory(records, describe)) {
    kinds.set(kind, plus(kinds.get(kind), bytes, at))
    if (owner === undefined) continue
    const key = storeKey(tenant, owner)
    const before = principals.get(key)
    const sessions = (before?.sessions ?? 0) + (kind === 'session' ? 1 : 0)
    principals.set(key, { ...plus(before, bytes, at), tenant, principal: owner, sessions })
  }
  const byBytes = [...principals.values()].toSorted((a, b) => b.bytes - a.bytes)
  return { kinds: Object.fromEntries([...kinds].toSorted(([, a], [, b]) => b.bytes - a.bytes)), principals: byBytes }
}

function plus(before: Amount | undefined, bytes: number, at: number | undefined): Amount {
  const times = [before?.oldest, before?.newest, at].filter((time) => time !== undefined)
  return {
    count: (before?.count ?? 0) + 1,
    bytes: (before?.bytes ?? 0) + bytes,
    oldest: times.length > 0 ? Math.min(...times) : undefined,
    newest: times.length > 0 ? Math.max(...times) : undefined,
  }
}
