import type { Purpose, Signer } from '../core/ports/keys.ts'
import { base64Url } from '../protocol/base64.ts'

const encoder = new TextEncoder()

export interface Jwt {
  readonly purpose: Purpose
  /** `typ` of the header. */
  readonly typ: string
  readonly claims: Readonly<Record<string, unknown>>
}

/** A JWT with these claims, as they are. The caller says when it ends. */
export async function signJwt(signer: Signer, { purpose, typ, claims }: Jwt): Promise<string> {
  const { kid, alg, sign } = await signer.key(purpose)
  const text = `${encoded(JSON.stringify({ alg, kid, typ }))}.${encoded(JSON.stringify(claims))}`
  return `${text}.${base64Url(await sign(encoder.encode(text)))}`
}

export interface TokenRequest {
  /** The URL of this server, as its operator configured it: never one that a request names. */
  readonly issuer: string
  readonly subject: string
  /** The URL of the agent or the server that the token is for. */
  readonly audience: string
  readonly scope: readonly string[]
  /** Who asked for it. Default: the subject. */
  readonly client?: string | undefined
  /** Where the subject is, below the issuer, if it is an agent (AOAuth): its URL is issuer, path, slash, subject. */
  readonly agentPath?: string | undefined
  /** Who acts for the subject (RFC 8693 §4.1). */
  readonly actor?: object | undefined
  /** Milliseconds since 1970. */
  readonly now: number
  readonly ttlSeconds?: number
}

/** AOAuth: production tokens live for two to five minutes. */
export const TOKEN_SECONDS = 300

/** An access token of this server (RFC 9068, AOAuth). */
export function mintToken(signer: Signer, request: TokenRequest): Promise<string> {
  const { issuer, subject, audience, scope, client = subject, agentPath, actor, now, ttlSeconds = TOKEN_SECONDS } = request
  const iat = Math.floor(now / 1000)
  const claims = {
    iss: issuer,
    sub: subject,
    aud: audience,
    iat,
    nbf: iat,
    exp: iat + ttlSeconds,
    jti: crypto.randomUUID(),
    client_id: client,
    scope: scope.join(' '),
    token_type: 'Bearer',
    ...(agentPath !== undefined && { agent_path: agentPath }),
    ...(actor && { act: actor }),
  }
  return signJwt(signer, { purpose: 'tokens', typ: 'at+jwt', claims })
}

function encoded(text: string): string {
  return base64Url(encoder.encode(text))
}
