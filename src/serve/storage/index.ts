import { prune, type Pruned, type PruneRequest } from '../../core/durable/prune.ts'
import type { Blobs } from '../../core/ports/blobs.ts'
import type { Store } from '../../core/ports/store.ts'
import { Records } from '../../core/durable/records.ts'
import { usageOf, type Usage } from '../../core/durable/usage.ts'
import { describe, UPLOAD } from './keys.ts'

export type { Pruned, PruneRequest }

export interface StorageReport extends Usage {
  /** Bytes in use in the database. */
  readonly bytes: number
}

/** What operators can see and remove of a server's data. */
export interface Storage {
  show(): Promise<StorageReport>
  prune(request: PruneRequest): Promise<Pruned>
}

export interface StorageParts {
  readonly store: Store
  readonly blobs: Blobs
  /** Removes a session, unless somebody uses it. Default: nobody does, as no server has the store open. */
  readonly remove?: (tenant: string, session: string) => Promise<boolean>
}

export function storageOf({ store, blobs, ...parts }: StorageParts): Storage {
  const records = new Records(store)
  const { remove = (tenant, session) => records.removeSession(tenant, session).then(() => true) } = parts
  return {
    show: async () => ({ bytes: await store.bytes(), ...(await usageOf(records, describe)) }),
    prune: (request) =>
      prune({ records, describe, remove, onDelete: async ({ kind, key }) => (kind === UPLOAD ? blobs.delete(key) : undefined) }, request),
  }
}
