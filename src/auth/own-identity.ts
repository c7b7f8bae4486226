import type { Actor } from '../core/ports/access.ts'
import type { Identity } from '../core/ports/identity.ts'
import type { Signer } from '../core/ports/keys.ts'
import { UampError } from '../protocol/errors.ts'
import { AGENTS_PATH } from './issuers.ts'
import { mintToken, TOKEN_SECONDS } from './mint.ts'

export interface IdentityOptions {
  /** Asked for when it is first needed. */
  readonly signer: () => Signer
  /** This server's URL, as its operator configured it. */
  readonly url: () => string | undefined
  readonly now: () => number
}

/** How many agents may stand in a token as acting for each other. */
const ACTORS = 8

/** What this server signs in the name of its agents. */
export function serverIdentity({ signer, url, now }: IdentityOptions): Identity {
  return {
    url,
    envelopeKey: () => signer().key('envelopes'),
    async mint({ subject, isAgent, audience, scope, client = subject, actor, until = Infinity }) {
      const issuer = url()
      if (issuer === undefined) {
        throw new UampError('not_supported', 'This server does not know its own URL, so it has no tokens: set `publicUrl`')
      }
      const time = now()
      const ttlSeconds = Math.min(TOKEN_SECONDS, Math.floor((until - time) / 1000))
      if (ttlSeconds < 1) throw new UampError('unauthorized', 'The token of the caller has ended')
      const act = actor && actorClaim(actor, ACTORS)
      const agentPath = isAgent && AGENTS_PATH
      const token = await mintToken(signer(), { issuer, subject, agentPath, audience, scope, client, actor: act, now: time, ttlSeconds })
      return { token, expiresInMs: ttlSeconds * 1000 }
    },
  }
}

/** RFC 8693 §4.1: the newest actor outside, those that it acts for inside. */
function actorClaim({ issuer, subject, actor }: Actor, depth: number): object {
  return { ...(issuer !== undefined && { iss: issuer }), sub: subject, ...(actor && depth > 1 && { act: actorClaim(actor, depth - 1) }) }
}
