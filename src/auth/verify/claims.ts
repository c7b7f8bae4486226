import type { Actor, Denial } from '../../core/ports/access.ts'
import { isRecord } from '../../protocol/json.ts'
import { refused } from './token.ts'

type Claims = Readonly<Record<string, unknown>>

/** The longest name that an issuer may give. */
const NAME_CHARS = 512

export interface TimeRules {
  /** Milliseconds since 1970. */
  readonly now: number
  readonly leewayMs: number
  /** The longest life of a token: an hour. Default: any. */
  readonly longestMs?: number | undefined
}

/** When a token begins and ends (RFC 7519 §4.1.4–6). */
export function checkTimes({ exp, nbf, iat }: Claims, { now, leewayMs, longestMs }: TimeRules): Denial | undefined {
  if (!isTime(exp)) return refused('invalid', 'The token does not say when it ends')
  if (exp * 1000 + leewayMs <= now) return refused('expired', 'The token has expired')
  if (nbf !== undefined && !(isTime(nbf) && nbf * 1000 - leewayMs <= now)) return refused('invalid', 'The token is not valid yet')
  if (!isTime(iat)) return refused('invalid', 'The token does not say when it was issued')
  if (iat * 1000 - leewayMs > now) return refused('invalid', 'The token was issued in the future')
  if (longestMs !== undefined && (exp - iat) * 1000 > longestMs) return refused('invalid', 'The token is valid for longer than an hour')
  return undefined
}

/** Seconds since 1970 that a `Date` can have. */
export function isTime(value: unknown): value is number {
  return typeof value === 'number' && Math.abs(value) <= 8.64e12
}

/** A name that can be a part of a key. */
export function nameIn(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' && value.length <= NAME_CHARS && value.isWellFormed() ? value : undefined
}

/**
 * OpenID Connect Core §2, Back-Channel Logout §2.4, Keycloak's own `typ`, and `token_use` of Amazon Cognito: none of these is for calling
 * an API.
 */
export function isOtherKind(claims: Claims): boolean {
  const { nonce, at_hash, c_hash, s_hash, events, typ, token_use: use } = claims
  if ([nonce, at_hash, c_hash, s_hash, events].some((claim) => claim !== undefined)) return true
  if (isOfEntra(claims) && claims['azp'] === undefined && claims['appid'] === undefined) return true
  return typ === 'ID' || typ === 'Refresh' || typ === 'Logout' || typ === 'Offline' || (use !== undefined && use !== 'access')
}

/** Entra puts roles into ID tokens, too. Only its access tokens name the app that asks. */
function isOfEntra({ tid, ver, uti }: Claims): boolean {
  return typeof tid === 'string' && (ver === '1.0' || ver === '2.0') && uti !== undefined
}

/**
 * What access tokens have and ID tokens lack, at providers that give both the type `JWT`: for which client they are, or what they allow.
 * Not `azp`, which OpenID Connect Core §2 has for ID tokens, and Google in all of them.
 */
const GRANTED = ['client_id', 'appid', 'azpacr', 'cid', 'gty', 'scope', 'scp']

/** True if a token of the type `JWT` is an access token. `paths`: the claims in which the operator looks for what it allows. */
export function isGrant(claims: Claims, paths: readonly string[]): boolean {
  return GRANTED.some((name) => claims[name] !== undefined) || paths.some((path) => claimAt(claims, path) !== undefined)
}

/** The audiences of a token. */
export function audiencesIn({ aud }: Claims): readonly string[] {
  const all: readonly unknown[] = Array.isArray(aud) ? aud : [aud]
  return all.filter((each) => typeof each === 'string')
}

/** The claim of this name, or below this path: `realm_access.roles`. */
export function claimAt(claims: Claims, path: string): unknown {
  if (Object.hasOwn(claims, path)) return claims[path]
  let value: unknown = claims
  for (const name of path.split('.')) {
    if (!isRecord(value) || !Object.hasOwn(value, name)) return undefined
    value = value[name]
  }
  return value
}

/** A list, or a text with spaces. */
export function wordsIn(value: unknown): string[] {
  const all: readonly unknown[] = Array.isArray(value) ? value : typeof value === 'string' ? value.split(' ') : []
  return all.filter((each): each is string => typeof each === 'string' && each !== '')
}

/** AOAuth: `trust:verified` and `trust:reputation-80` in a scope are the labels `verified` and `reputation:80`. */
export function labelsIn(words: readonly string[]): string[] {
  return words.flatMap((word) => (word.startsWith('trust:') ? [word.slice('trust:'.length).replace(/-(\d+)$/, ':$1')] : []))
}

/** How many may act for each other. */
const ACTORS = 8

/** RFC 8693 §4.1. Undefined: nobody acts for the subject. `false`: the claim cannot be read. */
export function actorIn(act: unknown, depth = ACTORS): Actor | undefined | false {
  if (act === undefined) return undefined
  const subject = isRecord(act) ? nameIn(act['sub']) : undefined
  if (!isRecord(act) || subject === undefined || depth === 0) return false
  const issuer = nameIn(act['iss'])
  const actor = actorIn(act['act'], depth - 1)
  if (actor === false) return false
  return { subject, ...(issuer !== undefined && { issuer }), ...(actor && { actor }) }
}

/** What the sender must prove to hold (RFC 9449 §6, RFC 8705 §3.1). */
export interface Confirmation {
  /** The thumbprint of a key. */
  readonly jkt?: string | undefined
  /** The thumbprint of a certificate. */
  readonly x5t?: string | undefined
}

/** Undefined: nothing. `false`: something that this server cannot check. */
export function confirmationIn(cnf: unknown): Confirmation | undefined | false {
  if (cnf === undefined) return undefined
  if (!isRecord(cnf)) return false
  const [jkt, x5t] = [nameIn(cnf['jkt']), nameIn(cnf['x5t#S256'])]
  const known = [jkt, x5t].filter((each) => each !== undefined).length
  return known > 0 && known === Object.keys(cnf).length ? { jkt, x5t } : false
}
