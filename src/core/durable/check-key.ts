import { UampError } from '../../protocol/errors.ts'
import { fieldsOf } from '../../protocol/json.ts'
import type { Keys } from '../ports/keys.ts'
import type { Store } from '../ports/store.ts'
import { storeKey } from '../basics/store-key.ts'

const KEY = storeKey('', 'sealed-with')
const TEXT = 'uamp'

/** Rejects if another key sealed the secrets in this store. A store without secrets takes this key. */
export async function checkKey(store: Store, keys: Keys): Promise<void> {
  const stored = await store.get(KEY)
  if (!stored) {
    await store.set(KEY, { id: keys.id, sealed: keys.seal(TEXT, KEY) }, { ifVersion: 0, sync: true })
    return
  }
  const { id, sealed } = fieldsOf(stored.value)
  if (id !== keys.id) {
    throw new UampError(
      'conflict',
      `The secrets in this data folder were sealed with the key ${String(id)}, but this is ${keys.id}: put the right uamp.key back, or set the right UAMP_KEY`,
    )
  }
  keys.open(String(sealed), KEY)
}
