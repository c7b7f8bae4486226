import type { HttpClient } from '../core/ports/http.ts'
import { UampError } from '../protocol/errors.ts'
import { fieldsOf } from '../protocol/json.ts'
import { readJson } from '../wire/upstream.ts'
import { callUpstream, shortBounds } from './upstream.ts'
import { oneLoopback } from '../wire/address.ts'
import { originOf, serverOf } from './remote-url.ts'

/** An OAuth client of another server. */
export interface ClientAuth {
  readonly type: 'client'
  readonly clientId: string
  readonly clientSecret?: string
  /** A private JWK, by which the client proves who it is (RFC 7523), instead of the secret. */
  readonly privateKey?: JsonWebKey & { readonly kid?: string }
  /** Where tokens are given. Default: what the other server's metadata names, which must be on that server. */
  readonly tokenUrl?: string
  readonly scope?: string
  /** Whom the token is for, in the words of the other server: `@agent-b`, a URL, or an audience. Default: the URL of the remote agent. */
  readonly target?: string
  /** Asks for a token of the caller's, in exchange for one that this server makes (RFC 8693). */
  readonly exchange?: boolean
}

export interface Granted {
  readonly token: string
  readonly expiresInMs: number
}

export interface GrantOptions {
  /** The name of the remote agent, for errors. */
  readonly name: string
  readonly auth: ClientAuth
  /** The URL of the remote agent. */
  readonly audience: string
}

/** A caller's token of this server, for an exchange. Is given the issuer that it is for. */
export type SubjectToken = (issuer: string) => Promise<string>

type Calling = { readonly http: HttpClient; readonly signal: AbortSignal }

const ANSWER_BYTES = 64 * 1024
const CALL_MS = 10_000
/** How long metadata is believed. */
const KNOWN_MS = 60 * 60_000
/** For servers that do not say when a token ends. */
const EXPIRES_SECONDS = 300
/** A longer token is none that a header can carry. */
const LONGEST = 16 * 1024
const ASSERTION_SECONDS = 60

interface Endpoint {
  readonly issuer: string
  readonly url: string
  /** The client's secret goes into the body, because the server takes no other form. */
  readonly inBody: boolean
}

/** Gets tokens from another server, as its client. */
export class TokenEndpoint {
  readonly #options: GrantOptions
  #known: { readonly endpoint: Endpoint; readonly until: number } | undefined

  constructor(options: GrantOptions) {
    this.#options = options
  }

  async grant(by: Calling, subject?: SubjectToken): Promise<Granted> {
    const { auth, audience } = this.#options
    const endpoint = await this.#endpoint(by)
    const body = new URLSearchParams({
      ...(subject ? await exchanged(subject, endpoint.issuer) : { grant_type: 'client_credentials' }),
      target: auth.target ?? audience,
      // The name that other servers have for it. Some refuse one that they do not know.
      ...(auth.target !== undefined && { audience: auth.target }),
      ...(auth.scope !== undefined && { scope: auth.scope }),
    })
    const headers = await this.#identify(endpoint, body)
    try {
      return await this.#post(endpoint.url, { headers, body: body.toString() }, by)
    } catch (thrown) {
      const { code, message, details: { status: _, ...details } = {} } = UampError.from(thrown)
      // The server may have moved its endpoint.
      if (code === 'not_found') this.#known = undefined
      by.signal.throwIfAborted()
      // Without the status, which would pass for an answer of the agent's server, where 404 says that it does not speak a protocol.
      // Without the cause: the other server may have repeated what it was sent, and a log would keep it.
      // A form that is refused is no mistake of whoever called the agent.
      throw new UampError(code === 'invalid_request' ? 'provider_error' : code, message, { details })
    }
  }

  async #endpoint(by: Calling): Promise<Endpoint> {
    const { auth, audience } = this.#options
    if (auth.tokenUrl !== undefined) return { issuer: auth.tokenUrl, url: auth.tokenUrl, inBody: false }
    if (this.#known && performance.now() < this.#known.until) return this.#known.endpoint
    const endpoint = await this.#discover(audience, by)
    this.#known = { endpoint, until: performance.now() + KNOWN_MS }
    return endpoint
  }

  /** RFC 8414 and OpenID Connect Discovery: of the agent, of its server, and of the host. */
  async #discover(audience: string, by: Calling): Promise<Endpoint> {
    const issuers = [...new Set([audience, serverOf(audience), new URL(audience).origin])]
    let other: string | undefined
    for (const issuer of issuers) {
      for (const url of metadataUrls(issuer)) {
        const metadata = await this.#metadata(url, by)
        // RFC 8414 §3.3: otherwise somebody else's metadata would pass for that of this issuer. An agent may leave it to its server.
        if (metadata && isIssuer(metadata, issuer)) return this.#read(metadata, issuer)
        if (metadata) other ??= issuer
      }
    }
    if (other !== undefined) throw this.#failed(`has metadata of another issuer than ${other}: set \`tokenUrl\` if that is right`)
    throw this.#failed(`names no token endpoint at ${issuers.join(' or ')}: set \`tokenUrl\``)
  }

  async #metadata(url: string, { http, signal }: Calling): Promise<Readonly<Record<string, unknown>> | undefined> {
    const name = `The server of "${this.#options.name}"`
    const request = { url, method: 'GET' as const, headers: { accept: 'application/json' } }
    try {
      const answer = await callUpstream({ name, http, signal, request, explain: () => undefined, ...shortBounds(ANSWER_BYTES, CALL_MS) })
      return fieldsOf(await readJson(name, answer.body, ANSWER_BYTES))
    } catch (thrown) {
      const { details } = UampError.from(thrown)
      const status = details?.['status']
      // Only an answer says that there is no metadata: a server that cannot be reached may have some. A redirect is not followed.
      if (typeof status === 'number' && status >= 300 && status < 500 && status !== 429) return undefined
      throw thrown
    }
  }

  #read(metadata: Readonly<Record<string, unknown>>, issuer: string): Endpoint {
    const { token_endpoint: url, token_endpoint_auth_methods_supported: methods } = metadata
    if (typeof url !== 'string' || !URL.canParse(url)) throw this.#failed('names no token endpoint: set `tokenUrl`')
    // The secret would go to whoever the metadata names.
    if (originOf(oneLoopback(url)) !== originOf(oneLoopback(issuer)))
      throw this.#failed('names a token endpoint on another host: set `tokenUrl` if that is right')
    const inBody = Array.isArray(methods) && methods.includes('client_secret_post') && !methods.includes('client_secret_basic')
    return { issuer, url, inBody }
  }

  /** Adds who asks to the body, or returns the headers that say it. */
  async #identify({ url, inBody }: Endpoint, body: URLSearchParams): Promise<Record<string, string>> {
    const { clientId, clientSecret, privateKey } = this.#options.auth
    if (privateKey) {
      body.set('client_id', clientId)
      body.set('client_assertion_type', 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer')
      body.set('client_assertion', await assertion({ clientId, privateKey, audience: url }))
      return {}
    }
    if (!inBody && clientSecret !== undefined) return { authorization: `Basic ${btoa(`${formed(clientId)}:${formed(clientSecret)}`)}` }
    body.set('client_id', clientId)
    if (clientSecret !== undefined) body.set('client_secret', clientSecret)
    return {}
  }

  async #post(url: string, sent: { headers: Record<string, string>; body: string }, { http, signal }: Calling): Promise<Granted> {
    const name = `The token endpoint of "${this.#options.name}"`
    const headers = { accept: 'application/json', 'content-type': 'application/x-www-form-urlencoded', ...sent.headers }
    const request = { url, method: 'POST' as const, headers, body: sent.body }
    // Not sent again: an assertion is valid once.
    const bounds = { ...shortBounds(ANSWER_BYTES, CALL_MS), retries: 0, once: true }
    const answer = await callUpstream({ name, http, signal, request, explain: explainOAuth, ...bounds })
    const { access_token: token, token_type: type, expires_in: seconds } = fieldsOf(await readJson(name, answer.body, ANSWER_BYTES))
    if (typeof token !== 'string' || token.length > LONGEST || !/^[\x21-\x7e]+$/.test(token)) throw this.#failed('gave no token')
    if (typeof type === 'string' && type.toLowerCase() !== 'bearer') throw this.#failed(`gave a token that is not for "Bearer"`)
    const lives = typeof seconds === 'number' || typeof seconds === 'string' ? Number(seconds) : EXPIRES_SECONDS
    return { token, expiresInMs: (lives > 0 ? lives : EXPIRES_SECONDS) * 1000 }
  }

  #failed(what: string): UampError {
    return new UampError('provider_error', `The server of "${this.#options.name}" ${what}`)
  }
}

/** A slash at the end may differ, because some servers write it, and the name of this machine. */
function isIssuer({ issuer: named }: Readonly<Record<string, unknown>>, issuer: string): boolean {
  return typeof named === 'string' && oneLoopback(named.replace(/\/+$/, '')) === oneLoopback(issuer)
}

/** RFC 8414 §3.1 puts the path after the well-known name, OpenID Connect and AOAuth before it. */
function metadataUrls(issuer: string): readonly string[] {
  const { origin, pathname } = new URL(issuer)
  const path = pathname.replace(/\/+$/, '')
  const own = ['oauth-authorization-server', 'openid-configuration'].map((name) => `${issuer}/.well-known/${name}`)
  return path === '' ? own : [...own, `${origin}/.well-known/oauth-authorization-server${path}`]
}

async function exchanged(subject: SubjectToken, issuer: string): Promise<Record<string, string>> {
  return {
    grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
    subject_token: await subject(issuer),
    subject_token_type: 'urn:ietf:params:oauth:token-type:access_token',
    requested_token_type: 'urn:ietf:params:oauth:token-type:access_token',
  }
}

interface Assertion extends Required<Pick<ClientAuth, 'clientId' | 'privateKey'>> {
  readonly audience: string
}

/** RFC 7523 §3. */
async function assertion({ clientId, privateKey, audience }: Assertion): Promise<string> {
  const { importJWK, SignJWT } = await import('jose')
  const { kid, alg = algorithmOf(privateKey) } = privateKey
  const claims = new SignJWT({ jti: crypto.randomUUID() })
    .setProtectedHeader({ alg, typ: 'JWT', ...(kid !== undefined && { kid }) })
    .setIssuer(clientId)
    .setSubject(clientId)
    .setAudience(audience)
    .setIssuedAt()
    .setExpirationTime(`${ASSERTION_SECONDS} seconds`)
  return claims.sign(await importJWK(privateKey as Parameters<typeof importJWK>[0], alg))
}

function algorithmOf({ kty, crv }: JsonWebKey): string {
  if (kty === 'OKP') return 'EdDSA'
  return kty === 'EC' ? `ES${crv === 'P-384' ? '384' : crv === 'P-521' ? '512' : '256'}` : 'RS256'
}

/** RFC 6749 §2.3.1: a colon in a name must not end it. */
function formed(text: string): string {
  return new URLSearchParams({ a: text }).toString().slice(2)
}

/** RFC 6749 §5.2. The description may repeat what was sent. */
function explainOAuth(body: unknown): string | undefined {
  const { error } = fieldsOf(body)
  return typeof error === 'string' && /^[\w.-]{1,64}$/.test(error) ? error : 'no reason that is safe to repeat'
}
