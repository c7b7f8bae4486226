import { UampError } from '../../protocol/errors.ts'
import type { SetOperation, Store } from '../ports/store.ts'

/**
 * Uses up a name, such as the id of a token or of a payment, as a part of a batch: if it was used before, the whole batch is rejected
 * with `conflict`. The name is free again after `ttlMs`.
 */
export function onceOperation(key: string, ttlMs: number): SetOperation {
  return { op: 'set', key, value: 1, options: { ifVersion: 0, ttlMs } }
}

/** Uses up a name. False: it was used before. */
export async function once(store: Pick<Store, 'batch'>, key: string, ttlMs: number): Promise<boolean> {
  try {
    await store.batch([onceOperation(key, ttlMs)])
    return true
  } catch (thrown) {
    if (thrown instanceof UampError && thrown.code === 'conflict') return false
    throw thrown
  }
}
