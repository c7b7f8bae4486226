import { sessionIn, type Described, type Describe } from '../../core/durable/inventory.ts'
import { storeKey } from '../../core/basics/store-key.ts'

/** Explains the transports' keys that do not have the form tenant/kind/owner/…, and which records belong together. */
export const describe: Describe = (parts, { index }): Described | undefined => {
  const [tenant = '', kind = '', third = '', fourth = ''] = parts
  switch (kind) {
    case 'a2a-task':
      return { kind, owner: third, ...sessionIn(index), ...timeIn(index) }
    case 'a2a-message':
    case 'a2a-push':
      return { kind, owner: third, ...sessionIn(index), of: storeKey(tenant, 'a2a-task', third, fourth) }
    case 'omnia':
      return third === 'position' ? { kind: 'omnia-position', session: fourth } : { kind: UPLOAD, ...ownerIn(index), ...timeIn(index) }
    // What bounds a caller is not theirs to have removed: their free calls would begin anew. It goes by itself.
    case 'money-free':
    case 'money-spent':
      return { kind }
    default:
      return undefined
  }
}

/** The record of an upload. Its bytes have the same key. */
export const UPLOAD = 'omnia-upload'

/** The sort keys of these records are times. */
function timeIn(index: Readonly<Record<string, string>>): { at?: number } {
  const at = Number(Object.values(index)[0])
  return Number.isFinite(at) && at > 0 ? { at } : {}
}

/** Uploads are listed under tenant/omnia/uploads/owner. */
function ownerIn(index: Readonly<Record<string, string>>): { owner?: string } {
  const owner = Object.keys(index)[0]?.split('/')[3]
  return owner === undefined ? {} : { owner: decodeURIComponent(owner) }
}
