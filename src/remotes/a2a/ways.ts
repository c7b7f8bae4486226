import type { HttpClient } from '../../core/ports/http.ts'
import { UampError } from '../../protocol/errors.ts'
import type { Interface } from './dialect.ts'

/** An address that may be called, and by what. */
export interface Way {
  readonly interface: Interface
  readonly http: HttpClient
  /** It is of the origin that was configured: nowhere else are credentials shown. */
  readonly home: boolean
}

export interface WaysOptions {
  readonly name: string
  /** Where the agent is, as whoever runs this server wrote it. */
  readonly url: string
  readonly http: HttpClient
  /** Those where credentials may be shown come first. */
  readonly homeFirst: boolean
}

/**
 * The addresses of a card in the order in which they are tried. A card is a stranger's word: what it names beside the configured
 * origin (scheme, host and port) is called through the guard.
 */
export function waysTo(interfaces: readonly Interface[], { name, url, http, homeFirst }: WaysOptions): Way[] {
  const { origin } = new URL(url)
  const refused: string[] = []
  const ways = interfaces.flatMap((one): Way[] => {
    if (new URL(one.url).origin === origin) return [{ interface: one, http, home: true }]
    const { guarded } = http
    const reason = guarded ? guarded.refuses(one.url) : 'this runtime calls no addresses that others name'
    if (guarded && reason === undefined) return [{ interface: one, http: guarded, home: false }]
    refused.push(`${one.url}: ${reason}`)
    return []
  })
  if (ways.length === 0) {
    throw new UampError('provider_error', `The card of ${name} names no address that may be called (${[...new Set(refused)].join('; ')})`)
  }
  return homeFirst ? [...ways.filter(({ home }) => home), ...ways.filter(({ home }) => !home)] : ways
}
