import type { RecordedHeaders } from './recording.ts'

const LEFT_OUT = '[left out]'

/** A header is secret by a word of its name: `x-api-key` is, `x-ratelimit-remaining-tokens` is not. */
const SECRET = new Set(
  'authorization auth key apikey token secret signature cookie cookie2 password passwd credential credentials session jwt payment'.split(
    ' ',
  ),
)

const isSecret = (name: string): boolean =>
  name
    .toLowerCase()
    .split(/[-_]/)
    .some((word) => SECRET.has(word))

/** The names stay: that a key was sent is worth knowing. */
export function withoutSecrets(headers: Iterable<readonly [string, string]>): RecordedHeaders {
  const kept: Record<string, string> = {}
  for (const [name, value] of headers) kept[name.toLowerCase()] = isSecret(name) ? LEFT_OUT : value
  return kept
}

/** Keys travel in addresses too: Gemini's `?key=`, and `user:password@host`. */
export function withoutSecretsInUrl(text: string): string {
  const url = new URL(text)
  url.username = ''
  url.password = ''
  for (const name of [...url.searchParams.keys()]) if (isSecret(name)) url.searchParams.set(name, LEFT_OUT)
  return url.href
}
