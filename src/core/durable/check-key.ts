import { UampError } from '../../protocol/errors.ts'
import { fieldsOf } from '../../protocol/json.ts'
import type { Keys } from '../ports/keys.ts'
import type { Store } from '../ports/store.ts'
import { storeKey } from '../basics/store-key.ts'

const KEY = storeKey('', 'sealed-with')
const TEXT = 'uamp'

/** Rejects unless what is sealed in this store opens with these keys. A store that has nothing sealed yet takes them. */
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
      `The secrets in this data folder were sealed with the key ${String(id)}, and this is ${keys.id}: put the right uamp.key back, or set the right UAMP_KEY`,
    )
  }
  keys.open(String(sealed), KEY)
}
