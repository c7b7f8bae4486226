import { principalId } from '../../core/basics/principal.ts'
import type { Signer } from '../../core/ports/keys.ts'
import type { Call, Host } from '../../core/ports/transport.ts'
import { UampError } from '../../protocol/errors.ts'
import { AGENTS_PATH, agentUrl } from '../issuers.ts'
import { mintToken, TOKEN_SECONDS } from '../mint.ts'
import { ClientAuth } from './client-auth.ts'
import type { Client } from './clients.ts'
import { refused, UNCACHED } from './errors.ts'
import { readForm, required, type Form } from './form.ts'
import { readOwnToken, type OwnClaims } from './own-token.ts'
import { covers, granted, wordsIn } from './scope.ts'
import { askedTarget, defaultTarget, mayReach, type Here } from './target.ts'

export const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange'
const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token'
const TOKEN_TYPES: readonly string[] = [ACCESS_TOKEN, 'urn:ietf:params:oauth:token-type:jwt']
/** How many may act for each other. As many servers may a request pass. */
const ACTORS = 8

export interface TokenEndpointOptions {
  readonly host: Host
  readonly clients: ReadonlyMap<string, Client>
  readonly leewayMs: number
}

/** What this server knows of itself when it issues a token. */
interface Issuing extends Here {
  readonly issuer: string
  readonly signer: Signer
}

/** Issues tokens of this server to its clients (RFC 6749 §4.4, RFC 8693), and takes them back (RFC 7009). */
export class TokenEndpoint {
  readonly #options: TokenEndpointOptions
  readonly #auth: ClientAuth

  constructor(options: TokenEndpointOptions) {
    this.#options = options
    this.#auth = new ClientAuth(options)
  }

  async token(call: Call): Promise<Response> {
    const issuing = this.#issuing(call)
    const form = await readForm(call)
    const grant = required(form, 'grant_type')
    if (grant !== 'client_credentials' && grant !== EXCHANGE) {
      throw refused('unsupported_grant_type', `The grant_type must be client_credentials or ${EXCHANGE}`)
    }
    const client = await this.#client(form, call, issuing)
    return grant === EXCHANGE ? this.#exchange(client, form, issuing) : this.#ownToken(client, form, issuing)
  }

  /** RFC 7009 §2.2: also a token that was never good is answered with 200. */
  async revoke(call: Call): Promise<Response> {
    const issuing = this.#issuing(call)
    const form = await readForm(call)
    const client = await this.#client(form, call, issuing)
    const token = await this.#read(required(form, 'token'), issuing)
    if (token && token.client_id !== client.name) throw refused('unauthorized_client', 'The token was issued to another client')
    const { revocations } = this.#options.host
    if (token) await revocations?.revoke({ kind: 'token', id: token.jti, issuer: token.iss, expiresAt: token.exp * 1000 })
    return new Response(null, { headers: UNCACHED })
  }

  #issuing({ agent, root }: Call): Issuing {
    const { host } = this.#options
    const ownUrl = host.ownUrl()
    const { signer, agents } = host
    if (ownUrl === undefined || !signer) {
      throw new UampError(
        'not_supported',
        'This server does not know its own URL, so it cannot issue tokens: its operator can set publicUrl',
      )
    }
    const named = root ? undefined : agent
    return { ownUrl, signer, agents, agent: named, issuer: named === undefined ? ownUrl : agentUrl(ownUrl, named) }
  }

  async #client(form: Form, call: Call, { issuer, ownUrl }: Issuing): Promise<Client> {
    const audiences = [...new Set([issuer, ownUrl])].flatMap((each) => [each, `${each}/auth/token`, `${each}/auth/revoke`])
    const client = await this.#auth.client(form, call, audiences)
    if ([issuer, ownUrl].some((each) => this.#isRevoked(each, client)))
      throw refused('unauthorized_client', 'The access of this client was revoked')
    return client
  }

  #isRevoked(issuer: string, client: Client): boolean {
    const { name: subject } = client
    const id = principalId(issuer, subject, this.#pathOf(client))
    return this.#options.host.revocations?.find({ tenant: 'default', id, issuer, subject, scopes: [] }) !== undefined
  }

  /** Where the client is, below the server, if it is an agent. */
  #pathOf({ name, mayBeAgent }: Client): string | undefined {
    return mayBeAgent && this.#options.host.agents.get(name) !== undefined ? AGENTS_PATH : undefined
  }

  async #ownToken(client: Client, form: Form, issuing: Issuing): Promise<Response> {
    const { ownUrl, signer } = issuing
    const audience = askedTarget(form, issuing) ?? defaultTarget(client, issuing)
    if (!mayReach(client, audience, issuing))
      throw refused(
        'invalid_target',
        `The client ${client.name} gets no tokens for that target: they are for its targets in the settings of the server`,
      )
    const scope = granted(client.scopes, scopeOf(form))
    const { now } = this.#options.host
    const agentPath = this.#pathOf(client)
    // The URL of an agent is its server, the path and its name, whichever endpoint it asked.
    const issuer = agentPath === undefined ? issuerFor(audience, issuing.issuer, ownUrl) : ownUrl
    const token = await mintToken(signer, { issuer, subject: client.name, audience, scope, agentPath, now: now() })
    return issued({ token, scope, seconds: TOKEN_SECONDS })
  }

  /** The token says whose rights are used (`sub`), and who uses them (`act`). It never allows more than the one that it is made of. */
  async #exchange(client: Client, form: Form, issuing: Issuing): Promise<Response> {
    const { now } = this.#options.host
    const subject = await this.#given('subject_token', form, issuing)
    if (!subject) throw refused('invalid_request', 'The subject_token is not a valid token of this server')
    const isFor = form.get('requested_token_type')
    if (isFor !== undefined && !TOKEN_TYPES.includes(isFor)) throw refused('invalid_request', 'Only access tokens are issued')
    const actor = await this.#actor(client, form, issuing)
    const audience = askedTarget(form, issuing) ?? subject.aud
    if (!mayPass(client, { subject, audience, here: issuing }))
      throw refused('invalid_target', 'This token cannot be exchanged for that target')
    const have = wordsIn(subject.scope).filter((word) => covers(client.scopes, word))
    const scope = granted(have, scopeOf(form))
    if (scope.length === 0) throw refused('invalid_scope', 'Nothing of the scope of this token is left for this client')
    const at = now()
    const seconds = Math.min(TOKEN_SECONDS, Math.floor(subject.exp - at / 1000))
    if (seconds < 1) throw refused('invalid_request', 'The subject_token is about to end')
    const act = actsFor(subject, actor)
    const token = await mintToken(issuing.signer, {
      // The same principal as before, whichever endpoint was asked.
      issuer: issuerFor(audience, subject.iss, issuing.ownUrl),
      subject: subject.sub,
      agentPath: subject.agent_path,
      audience,
      scope,
      client: client.name,
      actor: act,
      now: at,
      ttlSeconds: seconds,
    })
    return issued({ token, scope, seconds, type: ACCESS_TOKEN })
  }

  async #given(name: 'subject_token' | 'actor_token', form: Form, issuing: Issuing): Promise<OwnClaims | undefined> {
    const token = required(form, name)
    if (!TOKEN_TYPES.includes(required(form, `${name}_type`)))
      throw refused('invalid_request', `The ${name}_type is not known here: write ${ACCESS_TOKEN}`)
    return this.#read(token, issuing)
  }

  /** A client acts itself, or as the owner of a token that was issued to it. */
  async #actor(client: Client, form: Form, issuing: Issuing): Promise<Actor> {
    if (!form.has('actor_token')) return { sub: client.name, iss: issuing.ownUrl }
    const actor = await this.#given('actor_token', form, issuing)
    // One that the client got for somebody else would hide who acts.
    if (!actor || actor.client_id !== client.name || actor.act !== undefined) {
      throw refused('invalid_request', 'The actor_token is not a valid token that this server has issued to this client')
    }
    return { sub: actor.sub, iss: actor.iss }
  }

  #read(token: string, { ownUrl, signer }: Issuing): Promise<OwnClaims | undefined> {
    const { host, leewayMs } = this.#options
    return readOwnToken(token, { signer, ownUrl, revocations: host.revocations, now: host.now, leewayMs })
  }
}

interface Actor {
  readonly sub: string
  readonly iss: string
}

/** Who acts now, with those before within (RFC 8693 §4.1). Nobody, if the owner of the token acts. */
function actsFor({ sub, act }: OwnClaims, actor: Actor): object | undefined {
  if (act === undefined) return actor.sub === sub ? undefined : actor
  // The same one again adds nothing.
  if (act['sub'] === actor.sub && act['iss'] === actor.iss) return act
  if (depthOf(act) >= ACTORS) throw refused('invalid_request', `No more than ${ACTORS} may act for each other`)
  return { ...actor, act }
}

function depthOf(act: unknown): number {
  return typeof act === 'object' && act !== null ? 1 + depthOf((act as { act?: unknown }).act) : 0
}

/**
 * Each agent here is an issuer, whose endpoint any client may ask. Elsewhere that would be misunderstood: who believes the agent believes
 * its issuer, and would take every client for it. So tokens for elsewhere are the server's.
 */
function issuerFor(audience: string, issuer: string, ownUrl: string): string {
  return audience === ownUrl || audience.startsWith(`${ownUrl}${AGENTS_PATH}/`) ? issuer : ownUrl
}

interface Passing {
  readonly subject: OwnClaims
  readonly audience: string
  readonly here: Here
}

/**
 * Whoever holds a token may narrow it to one agent of those that it is for. Only the one whom it was issued to, or the agent that it is
 * for, may pass it on to others: else a stolen token would open more doors than it was made for.
 */
function mayPass(client: Client, { subject, audience, here }: Passing): boolean {
  const { ownUrl } = here
  if (audience === subject.aud || (subject.aud === ownUrl && audience.startsWith(`${ownUrl}${AGENTS_PATH}/`))) return true
  const isItsAgent = client.mayBeAgent && subject.aud === agentUrl(ownUrl, client.name)
  return (isItsAgent || subject.client_id === client.name) && mayReach(client, audience, here)
}

function scopeOf(form: Form): readonly string[] | undefined {
  const scope = form.get('scope')
  return scope === undefined ? undefined : wordsIn(scope)
}

interface Issued {
  readonly token: string
  readonly scope: readonly string[]
  readonly seconds: number
  readonly type?: string
}

function issued({ token, scope, seconds, type }: Issued): Response {
  const body = {
    access_token: token,
    ...(type !== undefined && { issued_token_type: type }),
    token_type: 'Bearer',
    expires_in: seconds,
    scope: scope.join(' '),
  }
  return Response.json(body, { headers: UNCACHED })
}
