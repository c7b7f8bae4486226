import { storeKey } from '../../../core/basics/store-key.ts'
import type { Principal } from '../../../core/ports/access.ts'
import { UampError } from '../../../protocol/errors.ts'
import type { Slot } from '../../../protocol/json.ts'
import type { UploadRequest } from '../schema.ts'

/** What is known of stored media. The record does not change: an upload is complete when its bytes exist. */
export interface MediaRecord extends Readonly<UploadRequest> {
  readonly id: string
  readonly session: string
  /** The agent of the session. Earlier versions did not note it. */
  readonly agent?: string
  readonly owner: string
  readonly createdAt: number
  /** Of the secret in the URL of an upload. */
  readonly keyDigest?: string
  /** Until when its bytes may be sent, and until when they are kept. */
  readonly openUntil: number
  readonly until: number
}

export function infoOf(upload: MediaRecord): Slot {
  const { filename, mime_type, size_bytes, createdAt, until } = upload
  const { storage_ref } = namesOf(upload)
  return { storage_ref, filename, mime_type, size_bytes, created_at: timeOf(createdAt), expires_at: timeOf(until) }
}

export function namesOf({ session, id }: MediaRecord): { upload_id: string; storage_ref: string } {
  return { upload_id: `upl-${id}`, storage_ref: `omnia://sessions/${session}/media/med-${id}` }
}

export function absent(): UampError {
  return new UampError('not_found', 'There is no such upload')
}

export function keyOf({ tenant }: Pick<Principal, 'tenant'>, id: string): string {
  return storeKey(tenant, 'omnia', 'media', id)
}

export function timeOf(at: number): string {
  return new Date(at).toISOString()
}
