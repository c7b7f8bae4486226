import type { JWTPayload } from 'jose'

/** The longest life of an assertion: so long it is remembered. */
const LONGEST_SECONDS = 3600
const ID_CHARS = 256

export interface AssertionRules {
  /** What an assertion may be for, which are the names of this server. */
  readonly audiences: readonly string[]
  /** Milliseconds since 1970. */
  readonly now: number
  readonly leewayMs: number
}

/**
 * What is wrong with the claims of an assertion (RFC 7523 §3), whoever has signed it. This depends on nothing but what the client has sent,
 * so it may be told to anybody.
 */
export function wrongAssertion({ iss, sub, aud, exp, jti }: JWTPayload, rules: AssertionRules): string | undefined {
  const { audiences, now, leewayMs } = rules
  if (typeof sub !== 'string' || iss !== sub) return 'The client assertion must have the name of the client in iss and in sub'
  const named: readonly unknown[] = Array.isArray(aud) ? aud : [aud]
  if (!named.some((each) => audiences.includes(each as string))) {
    return `The client assertion is for another server: aud must be ${audiences.slice(0, 2).join(' or ')}`
  }
  if (typeof exp !== 'number') return 'The client assertion does not say when it ends: it needs exp'
  if (exp * 1000 + leewayMs <= now) return 'The client assertion has expired'
  if (exp * 1000 - now > LONGEST_SECONDS * 1000 + leewayMs) return 'The client assertion ends too late: exp may be an hour away'
  if (typeof jti !== 'string' || jti === '' || jti.length > ID_CHARS) {
    return `The client assertion needs a jti, which is new each time and has at most ${ID_CHARS} characters`
  }
  return undefined
}
