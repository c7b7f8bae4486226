import type { Principal } from '../../../core/ports/access.ts'

/** Bytes of the secret in an upload URL. 192 bits cannot be guessed. */
const KEY_BYTES = 24

/** The secret of an upload URL, and what is stored of it: who reads the store cannot make the URL. */
export async function newKey(): Promise<{ readonly key: string; readonly keyDigest: string }> {
  const key = hex(crypto.getRandomValues(new Uint8Array(KEY_BYTES)))
  return { key, keyDigest: await digestOf(key) }
}

export async function digestOf(key: string): Promise<string> {
  return hex(new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(key))))
}

/** Records are found by their tenant, and nobody who only has the URL says which it is. */
export function uploadUrl(server: string, { tenant }: Principal, { id, key }: { readonly id: string; readonly key: string }): string {
  return `${server}/media/upload/${id}?${new URLSearchParams({ tenant, key }).toString()}`
}

function hex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}
