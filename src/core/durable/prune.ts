import { UampError } from '../../protocol/errors.ts'
import { inventory, type Describe, type Item } from './inventory.ts'
import type { Records } from './records.ts'
import { STATE } from './state-places.ts'

/** What to remove. A session goes if `before` or `bytes` says so; with neither, everything of the principal goes. */
export interface PruneRequest {
  /** Remove only the data of this principal. */
  readonly principal?: string
  /** Remove sessions whose last response began before this, and other records that are older. */
  readonly before?: number
  /** Remove the oldest sessions until no more bytes than this are left. */
  readonly bytes?: number
  /** Remove nothing, only count. */
  readonly dryRun: boolean
}

export interface Pruned {
  readonly sessions: number
  /** Records that protocols keep beside sessions: tasks, runs, uploads. */
  readonly records: number
  readonly bytes: number
  /** Sessions that stay because they are in use. */
  readonly inUse: number
}

export interface PruneOptions {
  readonly records: Records
  readonly describe: Describe
  /** Removes a session; false: it is in use. */
  readonly remove: (tenant: string, session: string) => Promise<boolean>
  /** Called for each deleted record, to delete what it stands for, too. */
  readonly onDelete: (item: Item) => Promise<void>
}

interface Measured {
  readonly tenant: string
  readonly id: string
  readonly at: number
  bytes: number
  /** Bytes including what protocols keep beside the session. */
  whole: number
}

export async function prune({ records, describe, remove, onDelete }: PruneOptions, request: PruneRequest): Promise<Pruned> {
  const { principal, before, bytes: most, dryRun } = request
  if (principal === undefined && before === undefined && most === undefined) {
    throw new UampError('invalid_request', 'Say what to remove: by age, by bytes or by principal')
  }
  const { sessions, others } = await measure(records, { describe, principal })
  const everything = before === undefined && most === undefined
  const chosen = everything ? [...sessions.values()] : oldest([...sessions.values()], before, most)
  const removed = new Set<string>()
  let [inUse, bytes] = [0, 0]
  for (const { tenant, id, bytes: size } of chosen) {
    if (!dryRun && !(await remove(tenant, id))) {
      inUse++
      continue
    }
    removed.add(`${tenant} ${id}`)
    bytes += size
  }
  const times = new Map(others.map(({ key, at }) => [key, at]))
  const isOld = ({ at, of }: Item): boolean => before !== undefined && (at ?? times.get(of ?? '') ?? Infinity) < before
  const gone = others.filter((item) => everything || isOld(item) || removed.has(`${item.tenant} ${item.session}`))
  for (const item of gone) {
    bytes += item.bytes
    if (dryRun) continue
    await records.store.delete(item.key)
    await onDelete(item)
  }
  if (!dryRun) while (await records.store.tidy());
  return { sessions: removed.size, records: gone.length, bytes, inUse }
}

const OF_SESSIONS = new Set<string>(['session', 'session-config', 'turn', 'log', 'in', STATE.session])

async function measure(records: Records, { describe, principal }: { describe: Describe; principal: string | undefined }) {
  const sessions = new Map<string, Measured>()
  const others: Item[] = []
  for await (const item of inventory(records, describe)) {
    const { kind, tenant, session, owner, at, bytes } = item
    if (principal !== undefined && owner !== principal) continue
    if (!OF_SESSIONS.has(kind)) others.push(item)
    else if (session !== undefined && at !== undefined) {
      const key = `${tenant} ${session}`
      const known = sessions.get(key) ?? { tenant, id: session, at, bytes: 0, whole: 0 }
      known.bytes += bytes
      known.whole += bytes
      sessions.set(key, known)
    }
  }
  for (const { tenant, session, bytes } of others) {
    const known = sessions.get(`${tenant} ${session}`)
    if (known) known.whole += bytes
  }
  // An alias is removed with its session, which the alias's key does not name.
  return { sessions, others: others.filter(({ kind }) => principal !== undefined || kind !== 'alias') }
}

function oldest(sessions: readonly Measured[], before = -Infinity, most = Infinity): Measured[] {
  let left = sessions.reduce((sum, { whole }) => sum + whole, 0)
  const chosen: Measured[] = []
  for (const session of sessions.toSorted((a, b) => a.at - b.at)) {
    if (session.at >= before && left <= most) break
    chosen.push(session)
    left -= session.whole
  }
  return chosen
}
