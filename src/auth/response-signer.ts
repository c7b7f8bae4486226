import { callerName } from '../core/basics/principal.ts'
import type { Signer } from '../core/ports/keys.ts'
import type { ResponseSigner } from '../core/ports/signing.ts'
import type { Logger } from '../core/ports/transport.ts'
import { hashJson, sha256 } from '../protocol/canonical-json.ts'
import { answerText, isOnlyWords, requestMessages } from '../protocol/signed-parts.ts'
import { signJwt } from './mint.ts'

/** A signature is an answer's proof for as long as its key is known; `exp` says until when it was fresh. */
const FRESH_SECONDS = 300

/** When answers are signed: for clients that ask for it, for all, or for none. */
export type Signs = 'asked' | 'always' | 'never'

export interface ResponseSignerOptions {
  readonly signer: Signer
  readonly signs: Signs
  /** This server's own address, never one that a request names. */
  readonly ownUrl: () => string | undefined
  readonly now: () => number
  readonly log: Logger
}

/** Signs answers with RS256 JWTs. */
export function responseSigner({ signer, signs, ownUrl, now, log }: ResponseSignerOptions): ResponseSigner {
  let warned = false
  return {
    signs: (asked) => signs === 'always' || (signs === 'asked' && asked === true),
    async sign({ id, agent, principal, messages, requestHash, output }) {
      const url = ownUrl()
      if (url === undefined) {
        if (!warned) log('warn', 'Responses are not signed: set publicUrl')
        warned = true
        return undefined
      }
      const [response_hash, request_hash, output_hash] = await Promise.all([
        sha256(answerText(output)),
        requestHash ?? hashJson(requestMessages(messages)),
        isOnlyWords(output) ? undefined : hashJson(output),
      ])
      const iat = Math.floor(now() / 1000)
      const aud = callerName(principal)
      const claims = {
        iss: `${url}/agents/${encodeURIComponent(agent)}`,
        sub: agent,
        ...(aud !== undefined && { aud }),
        response_id: id,
        response_hash,
        request_hash,
        ...(output_hash !== undefined && { output_hash }),
        iat,
        exp: iat + FRESH_SECONDS,
        jti: crypto.randomUUID(),
      }
      return signJwt(signer, { purpose: 'responses', typ: 'response+jwt', claims })
    },
  }
}
