import type { Kept } from '../ports/store.ts'
import type { Head, Records } from './records.ts'
import { STATE, writtenAt } from './state-places.ts'

/** A record or a stream in the store, with its owner. */
export interface Item extends Kept {
  readonly tenant: string
  /** `session`, `turn`, `log`, or a transport's name for its records. */
  readonly kind: string
  /** Undefined: its session is gone. */
  readonly owner: string | undefined
  readonly session: string | undefined
  /** When it or its session last changed, if known. */
  readonly at: number | undefined
  /** The key of the record that it belongs to. */
  readonly of: string | undefined
}

/** What a key alone says. */
export type Described = Pick<Item, 'kind'> & Partial<Pick<Item, 'owner' | 'session' | 'at' | 'of'>>

/** Explains a transport's keys. `parts`: those of the key, the tenant first. Undefined: the key has the usual form. */
export type Describe = (parts: readonly string[], kept: Kept) => Described | undefined

/** Most heads to remember during a scan. */
const HEADS = 10_000

/** Yields everything in the store without reading the values, which may be large. */
export async function* inventory(records: Records, describe: Describe = () => undefined): AsyncGenerator<Item, void> {
  const heads = new Map<string, Head>()
  const headOf = async (tenant: string, session: string): Promise<Head | undefined> => {
    const key = `${tenant} ${session}`
    const head = heads.get(key) ?? (await records.head(tenant, session))
    if (head) heads.set(key, head)
    if (heads.size > HEADS) heads.clear()
    return head
  }
  for await (const kept of records.store.scan()) {
    const parts = kept.key.split('/').map(decoded)
    const [tenant = ''] = parts
    const { kind, owner, session, at, of } = describe(parts, kept) ?? usual(parts, kept)
    const head = session === undefined ? undefined : await headOf(tenant, session)
    yield { ...kept, kind, tenant, session, owner: owner ?? head?.owner, at: at ?? head?.updatedAt, of } as Item
  }
}

/** Explains the core's own keys, and keys of the form tenant/kind/owner/… */
function usual([, kind = '', third, fourth]: readonly string[], { index }: Kept): Described {
  switch (kind) {
    case 'head':
      return { kind: 'session', ...(third !== undefined && { session: third }) }
    case 'session':
      return { kind: 'session-config', ...(third !== undefined && { session: third }) }
    case 'log':
    case 'in':
      return { kind, ...(third !== undefined && { session: third }) }
    case STATE.session:
      return { kind, ...(third !== undefined && { session: third }) }
    case STATE.principal:
      return { kind, ...(third !== undefined && { owner: third }), at: writtenAt(index) }
    case STATE.agent:
      return { kind }
    case 'turn':
      return { kind, ...sessionIn(index) }
    default:
      return { kind, ...(third !== undefined && fourth !== undefined && { owner: third }), ...sessionIn(index) }
  }
}

/** The session that a record belongs to, taken from its indexes. */
export function sessionIn(index: Kept['index']): { session?: string } {
  const session = Object.keys(index)
    .find((name) => /^[^/]*\/(?:turns|aliases)\//.test(name))
    ?.split('/')[2]
  return session === undefined ? {} : { session: decoded(session) }
}

/** Third-party transports may write keys that are not encoded. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

/** The session that an alias names. */
export async function aliased(records: Records, key: string): Promise<string | undefined> {
  const value = (await records.store.get(key))?.value
  return typeof value === 'string' ? value : undefined
}
