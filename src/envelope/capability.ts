import { isRecord } from '../protocol/records.ts'
import { envelopeError } from './codes.ts'
import { isSameDid } from './did.ts'
import type { Intent } from './schema.ts'

/** How far the clocks of two organisations may be apart. */
const SKEW_S = 60

/** What a capability token is held against. */
export interface CapabilityUse {
  /** The DIDs under which the recipient is known. */
  readonly audience: readonly string[]
  /** Who sends the message. */
  readonly from: string
  readonly intent: Intent
  /** The agent that the message is for. */
  readonly agent: string
  /** Milliseconds since 1970. */
  readonly now: number
  /** The thumbprint of the key that signed the message (RFC 7638). */
  readonly thumbprint: string
}

/**
 * Holds the claims of a verified capability token (UAMP envelope §6.2) against its use. The token is part of a message that may be
 * forwarded, so it must name the sender, or the sender's key. Throws `4.01` where the token is no good, and `4.03` where it is good for
 * something else.
 */
export function checkCapability(claims: Readonly<Record<string, unknown>>, use: CapabilityUse): void {
  const { aud, exp, iat, nbf, sub, cnf, scope } = claims
  const seconds = use.now / 1000
  if (typeof exp !== 'number') throw refused('4.01', 'has no exp')
  if (exp + SKEW_S <= seconds) throw refused('4.01', 'has expired')
  for (const from of [iat, nbf]) {
    if (from !== undefined && (typeof from !== 'number' || from - SKEW_S > seconds)) throw refused('4.01', 'is not valid yet')
  }
  const audience = Array.isArray(aud) ? aud : [aud]
  const isForUs = audience.some((each) => typeof each === 'string' && use.audience.some((did) => isSameDid(did, each)))
  if (!isForUs) throw refused('4.03', 'is for somebody else')
  const isTheirs = typeof sub === 'string' && isSameDid(sub, use.from)
  if (!isTheirs && !(isRecord(cnf) && cnf['jkt'] === use.thumbprint)) throw refused('4.03', 'belongs to somebody else')
  const scopes = typeof scope === 'string' ? scope.split(' ') : []
  if (!scopes.some((each) => each === '*' || each === use.intent || each === `${use.agent}:*` || each === `${use.agent}:${use.intent}`)) {
    throw refused('4.03', `does not allow "${use.intent}" to ${use.agent}`)
  }
}

function refused(code: '4.01' | '4.03', what: string): Error {
  return envelopeError(code, `The capability token ${what}`, 'cap_token')
}
