import { a2aError } from './errors.ts'

/** Every version that is spoken here, the newest first. */
const VERSIONS = ['1.0', '0.3', '0.2', '0.1'] as const
export type Version = (typeof VERSIONS)[number]

/**
 * The version that a request says it speaks, by header or query (A2A 1.0 §3.6). Undefined: it does not say. An empty value is 0.3.
 * Patch numbers do not count.
 */
export function versionOf({ headers, url }: Request): Version | undefined {
  const said = headers.get('a2a-version') ?? queried(url)
  if (said === undefined) return undefined
  const short = said.trim() === '' ? '0.3' : said.trim().replace(/^(\d+\.\d+)\.\d+$/, '$1')
  const known = VERSIONS.find((version) => version === short)
  if (known === undefined) throw versionNotSupported(VERSIONS)
  return known
}

export function versionNotSupported(supported: readonly Version[]): Error {
  return a2aError('VERSION_NOT_SUPPORTED', `This version of A2A is not spoken here: ask for ${supported.join(', ')}`, {
    supportedVersions: supported.join(','),
  })
}

function queried(url: string): string | undefined {
  const start = url.indexOf('?')
  if (start < 0) return undefined
  for (const [name, value] of new URLSearchParams(url.slice(start))) if (name.toLowerCase() === 'a2a-version') return value
  return undefined
}
