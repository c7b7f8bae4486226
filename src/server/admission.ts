import { bearerToken } from '../auth/bearer.ts'
import { Bucket } from '../core/basics/bucket.ts'
import { RateLimiter } from '../core/basics/rate-limiter.ts'
import { admitted, checkMay, isDenial, principalKey, unauthorized } from '../core/basics/principal.ts'
import type { Access, Action, Credentials, Denial, Principal } from '../core/ports/access.ts'
import type { Trace } from '../core/ports/trace.ts'
import type { Logger, Quota } from '../core/ports/transport.ts'
import { UampError } from '../protocol/errors.ts'
import { plainAddress } from './address.ts'
import type { Limits } from './limits.ts'

/** The other end of a request, as far as the network tells. */
export interface Caller {
  /** The caller's address, or the one that a trusted proxy names. */
  readonly address: string
  /** Called when the connection has shown valid credentials: it is no longer evicted first, and its unread bytes count for the principal. */
  vouch(principal: Principal): void
  /** `certificate` of `Credentials`. */
  readonly certificate?: string | undefined
  /** `certificateUris` of `Credentials`. */
  readonly certificateUris?: readonly string[] | undefined
  /** `whenGone` of `Call`, if this runtime has a cheaper way than the signal of the request. */
  readonly whenGone?: ((leave: () => void) => void) | undefined
}

/** For runtimes that cannot tell. */
export const UNKNOWN_CALLER: Caller = { address: '', vouch: () => undefined }

/** A request, as far as it identifies its sender. */
export interface Sent {
  readonly method: string
  readonly url: string
  readonly headers: Headers
  readonly subprotocols?: readonly string[]
}

/** What a request brings to identify its sender. Most tokens need only the headers: the rest is worked out when it is asked for. */
class RequestCredentials implements Credentials {
  readonly headers: Headers
  readonly subprotocols: readonly string[]
  readonly #sent: Sent
  readonly #caller: Caller
  readonly #calledUrl: AdmissionOptions['calledUrl']

  constructor(sent: Sent, caller: Caller, calledUrl: AdmissionOptions['calledUrl']) {
    this.headers = sent.headers
    this.subprotocols = sent.subprotocols ?? NO_PROTOCOLS
    this.#sent = sent
    this.#caller = caller
    this.#calledUrl = calledUrl
  }

  get request(): { readonly method: string; readonly url: string } {
    const { method, url } = this.#sent
    return { method, url: this.#calledUrl?.(this.#sent) ?? url }
  }

  get certificate(): string | undefined {
    return this.#caller.certificate
  }

  get certificateUris(): readonly string[] | undefined {
    return this.#caller.certificateUris
  }

  get from(): string {
    return addressKey(this.#caller.address)
  }
}

const NO_PROTOCOLS: readonly string[] = []

export interface AdmissionOptions {
  readonly access: Access
  readonly limits: Limits
  readonly log: Logger
  readonly monotonic: () => number
  /** The URL that the client called, as proxies in front of this server tell it. Default: the one that arrived. */
  readonly calledUrl?: ((sent: Pick<Sent, 'url' | 'headers'>) => string) | undefined
  /** Pending while the server starts; undefined afterwards. */
  readonly starting: () => Promise<void> | undefined
}

/** Who sends something, and the request in which they do. */
export interface Sender {
  readonly caller: Caller
  /** Named in log lines. */
  readonly trace: Pick<Trace, 'fields'>
}

export interface Entry extends Sender {
  /** The agent that is called. */
  readonly agent?: string | undefined
  /** What the route does. Default: `call`. */
  readonly action?: Action | undefined
}

/** Told of credentials that arrive later than the request. */
export interface CredentialsWatch {
  readonly onAccepted: (principal: Principal) => void
  readonly onWrong: () => void
  /** `proven` of `Credentials`. */
  readonly proven?: () => string | undefined
}

const MINUTE_MS = 60_000

const UNSHOWN = 'This needs a valid token, sent as Authorization: Bearer <token>'

/** Asks `Access` for every route and socket that is not public, and bounds how often callers may ask. */
export class Admission {
  readonly #options: AdmissionOptions
  /** By `shareKey`. */
  readonly #requests: RateLimiter
  /** Requests to public routes, by address. */
  readonly #publicRequests: RateLimiter
  /** By address. */
  readonly #wrongTokens: RateLimiter
  /** Refusals that are logged. */
  readonly #refusals: Bucket
  #loggedAt = -Infinity

  constructor(options: AdmissionOptions) {
    const { limits, monotonic } = options
    this.#options = options
    this.#requests = new RateLimiter({ perSecond: limits.requestsPerSecond, burst: limits.requestBurst, monotonic })
    this.#publicRequests = new RateLimiter({ perSecond: limits.strangerRequestsPerSecond, burst: limits.strangerRequestBurst, monotonic })
    this.#refusals = new Bucket({ perSecond: 0.5, burst: 20, monotonic })
    this.#wrongTokens = new RateLimiter({ perSecond: limits.wrongTokensPerSecond, burst: limits.wrongTokenBurst, monotonic })
  }

  credentialsOf(sent: Sent, caller: Caller): Credentials {
    return new RequestCredentials(sent, caller, this.#options.calledUrl)
  }

  /** Remaining quota; meaningless without a principal. */
  quota(principal: Principal | undefined, address: string): Quota {
    return this.#requests.left(principal ? shareKey(principal, address) : '')
  }

  /** The principal of a request. Rejects a caller who may not call; `optional` gives undefined if there are no credentials. */
  admit(credentials: Credentials, entry: Entry): Promise<Principal>
  admit(credentials: Credentials, entry: Entry, optional: boolean): Promise<Principal | undefined>
  async admit(credentials: Credentials, entry: Entry, optional = false): Promise<Principal | undefined> {
    const { caller, agent, action = 'call' } = entry
    const { access, starting } = this.#options
    const started = starting()
    if (started) await started
    const found = await this.#authenticate(credentials, entry)
    if (found === undefined || isDenial(found)) {
      if (optional && bearerToken(credentials) === undefined) return undefined
      // Whoever has sent nothing that could be read is told how.
      throw bearerToken(credentials) ? unauthorized(found) : unauthorized(found, UNSHOWN)
    }
    this.#let(found, caller)
    // To operate is about the whole server, whichever agent is at its root.
    if (action === 'operate') checkMay(access, found, { action, agent: undefined })
    else if (agent !== undefined) checkMay(access, found, { action, agent })
    return found
  }

  /** The principal that a URL was made for. The URL is the credential, so `Access` is not asked. */
  async admitOwner(owner: () => Promise<Principal>, caller: Caller): Promise<Principal> {
    const started = this.#options.starting()
    if (started) await started
    const principal = await owner()
    this.#let(principal, caller)
    return principal
  }

  #let(principal: Principal, caller: Caller): void {
    caller.vouch(principal)
    const wait = this.#requests.take(shareKey(principal, caller.address))
    if (wait > 0) throw tooMany('Too many requests', wait)
  }

  /**
   * The refusal of a request to a public route, if too many come from its address. A valid token always passes, because a stranger
   * with the same address must not shut its owner out.
   */
  async refusePublic(credentials: Credentials, sender: Sender): Promise<UampError | undefined> {
    const wait = this.#publicRequests.take(addressKey(sender.caller.address))
    if (wait === 0) return undefined
    const hasToken = bearerToken(credentials) !== undefined
    if (hasToken && admitted(await this.#authenticate(credentials, sender))) return undefined
    return tooMany('Too many requests come from this address', wait)
  }

  /** `Access` for tokens that come later, in a message or a body. Wrong ones count like those in headers. */
  accessOf(sender: Sender, watch?: CredentialsWatch): Access {
    const { access } = this.#options
    const { caller } = sender
    return {
      schemes: access.schemes,
      authorize: (principal, action, agent) => access.authorize(principal, action, agent),
      authenticate: async (credentials) => {
        try {
          const { certificate, certificateUris } = caller
          const known = { from: addressKey(caller.address), certificate, certificateUris, proven: watch?.proven?.(), ...credentials }
          const found = await this.#authenticate(known, sender)
          const principal = admitted(found)
          if (principal) watch?.onAccepted(principal)
          else if (credentials.token !== undefined) watch?.onWrong()
          return found
        } catch (thrown) {
          watch?.onWrong()
          throw thrown
        }
      },
    }
  }

  /**
   * Throttles only wrong tokens. A whole office, or everybody behind a proxy that `trustProxy` does not name, shares one address: if it
   * were locked, a stranger there could keep the others out.
   */
  async #authenticate(credentials: Credentials, sender: Sender): Promise<Principal | Denial | undefined> {
    const found = await this.#options.access.authenticate(credentials)
    if (admitted(found) || bearerToken(credentials) === undefined) return found
    this.countWrong(sender)
    this.#logRefusal(isDenial(found) ? found : undefined, sender)
    return found
  }

  /** Counts a wrong token or secret. Throws if too many come from the address. */
  countWrong({ caller: { address }, trace }: Sender): void {
    const wait = this.#wrongTokens.take(addressKey(address))
    if (wait === 0) return
    this.#logGuessing({ address, ...trace.fields })
    throw tooMany('Too many wrong tokens come from this address', wait)
  }

  /** Why, and never what. Only a few, so that an attacker cannot fill the log. */
  #logRefusal(found: Denial | undefined, { caller: { address }, trace }: Sender): void {
    if (!this.#refusals.take(1)) return
    const { denied = 'invalid', message = 'The token is not known', claimed } = found ?? {}
    this.#options.log('info', 'A token was refused', { address, denied, because: message, ...(claimed && { claimed }), ...trace.fields })
  }

  /** At most once a minute, so that an attacker cannot fill the log. */
  #logGuessing(fields: Readonly<Record<string, string>>): void {
    const { log, monotonic } = this.#options
    const at = monotonic()
    if (at - this.#loggedAt < MINUTE_MS) return
    this.#loggedAt = at
    log('warn', 'Many wrong tokens come from one address', fields)
  }
}

function tooMany(message: string, wait: number): UampError {
  return new UampError('rate_limited', message, { details: { retry_after: wait } })
}

/** Everybody without a token is this one principal. */
export function isAnonymous({ id }: Principal): boolean {
  return id === 'anonymous'
}

/** Whose share a request or socket takes: of callers without a token each address has one, or one of them would take it all. */
export function shareKey(principal: Principal, address: string): string {
  return isAnonymous(principal) ? `${principalKey(principal)}\n${addressKey(address)}` : principalKey(principal)
}

/** The key of one caller. An IPv6 customer has a whole /64, and can use another address for every request. */
export function addressKey(address: string): string {
  // Asked for every request: most addresses are IPv4, and need no parsing.
  if (/^\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(address)) return address
  const plain = plainAddress(address) ?? ''
  return plain.includes(':') ? plain.split(':').slice(0, 4).join(':') : plain
}
