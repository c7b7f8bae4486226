import type { HttpClient } from '../../core/ports/http.ts'
import type { PublicJwk } from '../../core/ports/keys.ts'
import { joinedBytes } from '../../protocol/bytes.ts'
import { isRecord, parseJson } from '../../protocol/json.ts'
import { KeySet } from './key-set.ts'

/** Far more than the keys of any provider. */
const MOST_BYTES = 64 * 1024
/** For all calls that it takes to find the keys of one issuer. */
const TOTAL_MS = 5_000

export interface KeyPlace {
  readonly issuer: string
  /** Where the keys are, if it is known. */
  readonly jwksUri?: string | undefined
  /** A stranger's keys must be where the stranger is: nobody can make this server call a third party. */
  readonly isStranger: boolean
}

export interface Fetched {
  /** Undefined: they have not changed. */
  readonly keys: KeySet | undefined
  readonly uri: string
  readonly etag: string | undefined
  readonly maxAgeMs: number | undefined
}

export interface Fetching {
  readonly http: Pick<HttpClient, 'request'>
  readonly signal: AbortSignal
  /** The keys that are known already, and where they were. */
  readonly known?: { readonly uri: string; readonly etag: string | undefined } | undefined
}

/** Why keys could not be read. The message is for the operator. */
class KeysUnreadable extends Error {
  readonly status: number | undefined

  constructor(message: string, status?: number) {
    super(message)
    this.status = status
  }
}

/** Finds and reads the keys of an issuer. Follows no redirect. */
export async function fetchKeys(place: KeyPlace, { http, signal, known }: Fetching): Promise<Fetched> {
  const bounded = AbortSignal.any([signal, AbortSignal.timeout(TOTAL_MS)])
  const get: Get = (url, etag) => getJson(url, { http, signal: bounded, etag })
  const again = known && (await found(keysAt(known.uri, get, known.etag)))
  if (again) return again
  if (place.jwksUri !== undefined) return keysAt(place.jwksUri, get)
  // Agents have their keys at a fixed place (AOAuth), which spares a stranger's call.
  const fixed = `${place.issuer.replace(/\/+$/, '')}/.well-known/jwks.json`
  const first = place.isStranger ? await found(keysAt(fixed, get)) : undefined
  return first ?? keysAt((await discover(place, get)) ?? fixed, get)
}

/** The keys at this address, as they are. */
export async function getJwks(
  url: string,
  { http, signal }: Pick<Fetching, 'http' | 'signal'>,
): Promise<{ readonly keys: readonly PublicJwk[] }> {
  const { value } = await getJson(url, { http, signal, etag: undefined })
  return value as { readonly keys: readonly PublicJwk[] }
}

/** Undefined if nothing is there. */
function found<T>(answer: Promise<T>): Promise<T | undefined> {
  return answer.catch((thrown: unknown) => {
    if (isMissing(thrown)) return undefined
    throw thrown
  })
}

type Get = (url: string, etag?: string) => Promise<Answer>

interface Answer {
  readonly value: unknown
  readonly etag: string | undefined
  readonly maxAgeMs: number | undefined
  readonly unchanged: boolean
}

async function keysAt(uri: string, get: Get, etag?: string): Promise<Fetched> {
  const answer = await get(uri, etag)
  const keys = answer.unchanged ? undefined : KeySet.of(answer.value)
  if (!keys && !answer.unchanged) throw new KeysUnreadable(`${uri} is not a set of keys`)
  return { keys, uri, etag: answer.etag ?? (answer.unchanged ? etag : undefined), maxAgeMs: answer.maxAgeMs }
}

/** OpenID Connect Discovery §4, RFC 8414 §3. Undefined: the issuer has neither. */
async function discover({ issuer, isStranger }: KeyPlace, get: Get): Promise<string | undefined> {
  const base = issuer.replace(/\/+$/, '')
  const { origin, pathname } = new URL(issuer)
  const documents = [
    `${base}/.well-known/openid-configuration`,
    `${origin}/.well-known/oauth-authorization-server${pathname.replace(/\/+$/, '')}`,
  ]
  for (const url of documents) {
    const document = await found(get(url))
    if (!document) continue
    const { issuer: named, jwks_uri: uri } = isRecord(document.value) ? document.value : {}
    if (typeof named !== 'string' || named.replace(/\/+$/, '') !== base) throw new KeysUnreadable(`${url} speaks for another issuer`)
    if (typeof uri !== 'string' || !URL.canParse(uri)) throw new KeysUnreadable(`${url} names no keys`)
    if (url.startsWith('https:') && !uri.startsWith('https:')) throw new KeysUnreadable(`${url} names keys that do not come over TLS`)
    if (isStranger && new URL(uri).origin !== origin) throw new KeysUnreadable(`${url} names keys of another server`)
    return uri
  }
  return undefined
}

function isMissing(thrown: unknown): boolean {
  return thrown instanceof KeysUnreadable && (thrown.status === 404 || thrown.status === 410)
}

async function getJson(
  url: string,
  { http, signal, etag }: { readonly http: Fetching['http']; readonly signal: AbortSignal; readonly etag: string | undefined },
): Promise<Answer> {
  const { status, headers, body } = await http.request({
    url,
    method: 'GET',
    headers: { accept: 'application/json', ...(etag !== undefined && { 'if-none-match': etag }) },
    signal,
    maxBytes: MOST_BYTES,
    timeouts: { firstByteMs: TOTAL_MS, idleMs: TOTAL_MS, totalMs: TOTAL_MS },
  })
  const pieces: Uint8Array[] = []
  for await (const piece of body) pieces.push(piece)
  const told = { etag: shortTag(headers.get('etag')), maxAgeMs: maxAgeIn(headers.get('cache-control')) }
  if (status === 304 && etag !== undefined) return { ...told, value: undefined, unchanged: true }
  if (status !== 200) throw new KeysUnreadable(`${url} answered ${status}`, status)
  if (!/^application\/(?:[\w.-]+\+)?json\b/i.test(headers.get('content-type') ?? '')) throw new KeysUnreadable(`${url} is not JSON`)
  try {
    const value = parseJson(new TextDecoder('utf-8', { fatal: true }).decode(joinedBytes(pieces)))
    return { ...told, value, unchanged: false }
  } catch {
    throw new KeysUnreadable(`${url} is not JSON`)
  }
}

function shortTag(etag: string | null): string | undefined {
  return etag !== null && etag.length <= 256 ? etag : undefined
}

function maxAgeIn(header: string | null): number | undefined {
  if (header === null) return undefined
  if (/\bno-(?:store|cache)\b/i.test(header)) return 0
  const seconds = /\bmax-age="?(\d{1,9})/i.exec(header)?.[1]
  return seconds === undefined ? undefined : Number(seconds) * 1000
}
