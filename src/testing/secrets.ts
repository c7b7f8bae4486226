import { isSecretHeader } from '../core/secrets/secret-names.ts'
import type { RecordedHeaders } from './recording.ts'

const LEFT_OUT = '[left out]'

/** The names stay: that a key was sent is worth knowing. */
export function withoutSecrets(headers: Iterable<readonly [string, string]>): RecordedHeaders {
  const kept: Record<string, string> = {}
  for (const [name, value] of headers) kept[name.toLowerCase()] = isSecretHeader(name) ? LEFT_OUT : value
  return kept
}

/** Keys travel in addresses too: Gemini's `?key=`, and `user:password@host`. */
export function withoutSecretsInUrl(text: string): string {
  const url = new URL(text)
  url.username = ''
  url.password = ''
  for (const name of [...url.searchParams.keys()]) if (isSecretHeader(name)) url.searchParams.set(name, LEFT_OUT)
  return url.href
}
