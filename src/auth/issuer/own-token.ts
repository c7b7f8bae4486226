import type { JSONWebKeySet } from 'jose'
import * as z from 'zod/mini'
import { principalId } from '../../core/basics/principal.ts'
import type { Signer } from '../../core/ports/keys.ts'
import type { Revocations } from '../../core/ports/revocations.ts'
import { isOwnIssuer } from '../issuers.ts'
import { actorIn } from '../verify/claims.ts'

const MOST_CHARS = 8192

const Claims = z.object({
  iss: z.string(),
  sub: z.string(),
  aud: z.string(),
  exp: z.number(),
  jti: z.string(),
  client_id: z.string(),
  scope: z.string(),
  act: z.optional(z.record(z.string(), z.unknown())),
  agent_path: z.optional(z.string()),
})

/** What a token of this server says. */
export type OwnClaims = z.infer<typeof Claims>

export interface OwnTokenOptions {
  readonly signer: Pick<Signer, 'publicJwks'>
  readonly ownUrl: string
  readonly revocations: Pick<Revocations, 'find'> | undefined
  readonly now: () => number
  readonly leewayMs: number
}

/** The claims of an access token that this server itself has issued, and that is good now. */
export async function readOwnToken(token: string, options: OwnTokenOptions): Promise<OwnClaims | undefined> {
  const { signer, ownUrl, revocations, now, leewayMs } = options
  if (token.length > MOST_CHARS) return undefined
  const { createLocalJWKSet, jwtVerify } = await import('jose')
  const keys = createLocalJWKSet((await signer.publicJwks('tokens')) as unknown as JSONWebKeySet)
  const verified = await jwtVerify(token, keys, {
    algorithms: ['RS256', 'EdDSA', 'ES256'],
    typ: 'at+jwt',
    clockTolerance: leewayMs / 1000,
    currentDate: new Date(now()),
  }).catch(() => undefined)
  const { success, data } = z.safeParse(Claims, verified?.payload)
  if (!success || !isOwnIssuer(ownUrl, data.iss)) return undefined
  const { iss: issuer, sub: subject, jti, agent_path: path } = data
  const id = principalId(issuer, subject, path)
  const actor = actorIn(data.act)
  if (actor === false) return undefined
  const principal = { tenant: 'default', id, issuer, subject, actor, scopes: [], credential: jti, key: verified?.protectedHeader.kid }
  return revocations?.find(principal) === undefined ? data : undefined
}
