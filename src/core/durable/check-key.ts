import { UampError } from '../../protocol/errors.ts'
import { fieldsOf } from '../../protocol/json.ts'
import type { Keys } from '../ports/keys.ts'
import type { Store } from '../ports/store.ts'
import { storeKey } from '../basics/store-key.ts'

/** The record that names the key. */
export const SEALED_WITH = storeKey('', 'sealed-with')
const TEXT = 'uamp'

/** Rejects if another key sealed the secrets in this store. A store without secrets takes this key. */
export async function checkKey(store: Store, keys: Keys): Promise<void> {
  const stored = await store.get(SEALED_WITH)
  if (stored) assertKey(stored.value, keys)
  else await store.set(SEALED_WITH, { id: keys.id, sealed: keys.seal(TEXT, SEALED_WITH) }, { ifVersion: 0, sync: true })
}

/** Throws unless these keys made the value of `SEALED_WITH`. */
export function assertKey(value: unknown, keys: Keys | undefined): void {
  const { id, sealed } = fieldsOf(value)
  if (id !== keys?.id) {
    const given = keys ? `this is ${keys.id}` : 'there is no uamp.key'
    throw new UampError(
      'conflict',
      `The secrets in this data folder were sealed with the key ${String(id)}, but ${given}: put the right uamp.key back, or set the right UAMP_KEY`,
    )
  }
  keys?.open(String(sealed), SEALED_WITH)
}
