import { readFileSync } from 'node:fs'

/** The build puts it in: a user who bundles a server takes this file away from our package.json. */
declare const BUILT_VERSION: string | undefined

/** The version of this package. */
export function packageVersion(): string {
  if (typeof BUILT_VERSION === 'string') return BUILT_VERSION
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8')
  return (JSON.parse(text) as { readonly version: string }).version
}
