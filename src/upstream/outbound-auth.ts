import { principalId, principalKey } from '../core/basics/principal.ts'
import { storeKey } from '../core/basics/store-key.ts'
import { unlessAborted } from '../core/basics/time.ts'
import type { Principal } from '../core/ports/access.ts'
import type { ServerFacts, Turn } from '../core/ports/agent.ts'
import type { HttpAnswer, HttpClient, HttpRequest } from '../core/ports/http.ts'
import type { Identity } from '../core/ports/identity.ts'
import { UampError } from '../protocol/errors.ts'
import { audienceOf, originOf } from './remote-url.ts'
import { TokenEndpoint, type ClientAuth, type Granted } from './token-endpoint.ts'

/** Tokens that this server makes itself. The other server must trust it as an issuer. */
interface SelfAuth {
  readonly type: 'self'
  /** In whose name: the agent's, or that of whoever called the agent, with the agent as the one who acts. Default: the agent's. */
  readonly as?: 'agent' | 'caller'
  /** Default: `call`. */
  readonly scope?: string
  /** The URL that the token is for. Default: that of the remote agent. */
  readonly target?: string
}

/** How an agent shows a remote agent who it is. */
export type RemoteAuth = SelfAuth | ClientAuth

export interface OutboundAuthOptions {
  /** The name of the agent here. */
  readonly name: string
  readonly url: string
  readonly auth: RemoteAuth
}

/** A turn, or what stands for one: for whom a call is made. */
export type Asking = Pick<Turn, 'http' | 'signal'> & Partial<Pick<Turn, 'principal'>>

interface Held extends Granted {
  readonly since: number
  /** From then on another one is made. */
  readonly renewAt: number
  /** It was made because the one before was refused. */
  readonly again: boolean
}

/** Callers whose tokens are kept. The one who was served longest ago is forgotten first. */
const KEPT = 1_000
/** A token is replaced in the second half of its life, but not earlier than this before its end: a stream may be long. */
const RENEW_MS = 5 * 60_000
const GRANT_MS = 20_000
/** A token that replaces a refused one, and is refused itself, is not replaced again within this time. */
const PATIENCE_MS = 10_000
/** The shortest time between two renewals of one line. */
const LEAST_MS = 1_000

/** What makes the tokens of a remote agent. Undefined: it has a fixed one, or none. */
export function outboundAuth({ name, url, token, auth }: AgentAt): OutboundAuth | undefined {
  if (!auth) return undefined
  if (token !== undefined) throw new UampError('invalid_request', `"${name}" has both \`token\` and \`auth\`: leave one out`)
  return auth instanceof OutboundAuth ? auth : new OutboundAuth({ name, url, auth })
}

interface AgentAt {
  readonly name: string
  readonly url: string
  readonly token?: string | undefined
  /** One that is made already has tokens, which are used on. */
  readonly auth?: RemoteAuth | OutboundAuth | undefined
}

/**
 * The tokens that an agent here has for one agent elsewhere. Each is fetched once for all calls, replaced before it ends, and sent to
 * the origin of the remote agent only. The caller's own token is not known here, so it cannot go anywhere.
 */
export class OutboundAuth {
  readonly #options: OutboundAuthOptions
  readonly #origin: string
  readonly #audience: string
  readonly #endpoint: TokenEndpoint | undefined
  readonly #held = new Map<string, Promise<Held>>()
  #identity: Identity | undefined

  constructor(options: OutboundAuthOptions) {
    const { name, url, auth } = options
    this.#options = options
    this.#origin = originOf(url)
    this.#audience = audienceOf(url)
    this.#endpoint = auth.type === 'client' ? new TokenEndpoint({ name, auth, audience: this.#audience }) : undefined
  }

  /** Texts that must not reach logs and clients. */
  get secrets(): readonly string[] {
    const { auth } = this.#options
    if (auth.type === 'self') return []
    const { clientSecret, privateKey = {} } = auth
    return [clientSecret, privateKey.d, privateKey.p, privateKey.q].filter((secret) => secret !== undefined)
  }

  prepare({ identity }: ServerFacts): void {
    this.#identity = identity ?? this.#identity
  }

  /** The client of a turn, which adds the token to requests to the remote agent. */
  http(by: Asking): HttpClient {
    const { http } = by
    return { ...http, request: (request) => this.#request(by, request) }
  }

  async token(by: Asking): Promise<string> {
    return (await this.#get(by)).token
  }

  /** Forgets a token that was refused. False: another one would be refused as well. */
  async refused(token: string, by: Asking): Promise<boolean> {
    const key = this.#keyOf(by)
    const held = await this.#held.get(key)?.catch(() => undefined)
    // Another call has replaced it.
    if (held?.token !== token) return true
    if (held.again && performance.now() - held.since < PATIENCE_MS) return false
    void this.#keep(key, this.#fetch(by, true))
    return true
  }

  /** Calls `renew` with a new token each time that the one before comes to its end. Returns a function that ends this. */
  keepFresh(by: Asking, renew: (token: string) => Promise<void>): () => void {
    let timer: ReturnType<typeof setTimeout> | undefined
    let ended = false
    const plan = async (): Promise<void> => {
      const { renewAt, token } = await this.#get(by)
      if (ended) return
      timer = setTimeout(() => void next(token).catch(() => undefined), Math.max(LEAST_MS, Math.ceil(renewAt - performance.now())))
    }
    const next = async (before: string): Promise<void> => {
      const { token } = await this.#get(by)
      if (ended) return
      // A timer may be early by less than a millisecond, and the token still be the same.
      if (token !== before) await renew(token)
      await plan()
    }
    // Without a new token the other side ends the session, and says so.
    void plan().catch(() => undefined)
    return () => {
      ended = true
      clearTimeout(timer)
    }
  }

  async #request(by: Asking, request: HttpRequest): Promise<HttpAnswer> {
    const { http, principal } = by
    if (originOf(request.url) !== this.#origin) return http.request(request)
    // Not a spread of the turn, which would lose its getters. A goodbye has a signal of its own.
    const asking = { http, signal: request.signal, ...(principal && { principal }) }
    const token = await this.token(asking)
    const answer = await http.request(withToken(request, token))
    if (answer.status !== 401 || !(await this.refused(token, asking))) return answer
    for await (const _ of answer.body);
    return http.request(withToken(request, await this.token(asking)))
  }

  #get(by: Asking): Promise<Held> {
    const key = this.#keyOf(by)
    const held = this.#held.get(key) ?? this.#keep(key, this.#fetch(by))
    return unlessAborted(
      held.then((kept) => (performance.now() < kept.renewAt ? this.#touched(key, held, kept) : this.#renewed(by, key, held))),
      by.signal,
    )
  }

  /** The one that was used last is the last of the map. */
  #touched(key: string, held: Promise<Held>, kept: Held): Held {
    if (this.#held.get(key) === held) {
      this.#held.delete(key)
      this.#held.set(key, held)
    }
    return kept
  }

  /** Many calls may find the same token old. */
  #renewed(by: Asking, key: string, old: Promise<Held>): Promise<Held> {
    const now = this.#held.get(key)
    return now !== undefined && now !== old ? now : this.#keep(key, this.#fetch(by))
  }

  #keep(key: string, held: Promise<Held>): Promise<Held> {
    this.#held.delete(key)
    this.#held.set(key, held)
    for (const oldest of this.#held.keys()) {
      if (this.#held.size <= KEPT) break
      this.#held.delete(oldest)
    }
    // The next call tries again.
    held.catch(() => this.#held.get(key) === held && this.#held.delete(key))
    return held
  }

  async #fetch(by: Asking, again = false): Promise<Held> {
    const granted = await this.#grant(by)
    const since = performance.now()
    const { expiresInMs } = granted
    return { ...granted, since, again, renewAt: since + expiresInMs - Math.min(expiresInMs / 2, RENEW_MS) }
  }

  #grant(by: Asking): Promise<Granted> {
    const { auth } = this.#options
    if (!this.#endpoint || auth.type === 'self') return this.#mint(by, auth.target ?? this.#audience)
    // Of its own: the call that asks first may be cancelled, and others wait for the same token.
    const calling = { http: by.http, signal: AbortSignal.timeout(GRANT_MS) }
    const subject = auth.exchange === true ? async (issuer: string) => (await this.#mint(by, issuer)).token : undefined
    return this.#endpoint.grant(calling, subject)
  }

  async #mint({ principal }: Asking, audience: string): Promise<Granted> {
    const { name, auth } = this.#options
    const identity = this.#identity
    if (!identity) throw new UampError('not_supported', `"${name}" needs a server that makes tokens: it runs on none`)
    const scope = (auth.scope ?? 'call').split(/\s+/).filter((word) => word !== '')
    if (!this.#isForCaller) return identity.mint({ subject: name, isAgent: true, audience, scope })
    if (!principal) throw new UampError('not_supported', `"${name}" calls in the name of a caller, and there is none`)
    const actor = { issuer: identity.url(), subject: name, actor: principal.actor }
    return identity.mint({
      subject: subjectOf(principal, identity.url()),
      client: name,
      audience,
      scope,
      actor,
      until: principal.expiresAt,
    })
  }

  get #isForCaller(): boolean {
    const { auth } = this.#options
    return auth.type === 'self' ? auth.as === 'caller' : auth.exchange === true
  }

  #keyOf({ principal }: Asking): string {
    if (!this.#isForCaller || !principal) return ''
    return storeKey(principalKey(principal), principal.credential ?? '', JSON.stringify(principal.actor ?? null))
  }
}

/** Without what the request had: it may come from a config, and be for another server. */
function withToken(request: HttpRequest, token: string): HttpRequest {
  const others = Object.entries(request.headers).filter(([name]) => name.toLowerCase() !== 'authorization')
  return { ...request, headers: { ...Object.fromEntries(others), authorization: `Bearer ${token}` } }
}

/** The name of a caller among all whom this server vouches for: somebody whom another issuer vouches for has that issuer in it. */
function subjectOf(principal: Principal, own: string | undefined): string {
  const { tenant, id, issuer, subject } = principal
  // An agent here is somebody else than a caller of the same name.
  const isCaller = issuer === undefined || (issuer === own && id === principalId(issuer, subject ?? ''))
  const known = subject !== undefined && isCaller ? subject : id
  return tenant === 'default' ? known : storeKey(tenant, known)
}
