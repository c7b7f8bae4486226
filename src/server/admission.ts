import { bearerToken } from '../auth/bearer.ts'
import { Bucket, type Rate } from '../core/basics/bucket.ts'
import type { Access, Credentials, Principal } from '../core/ports/access.ts'
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
  /** `whenGone` of `Call`, if this runtime has a cheaper way than the signal of the request. */
  readonly whenGone?: ((leave: () => void) => void) | undefined
}

/** For runtimes that cannot tell. */
export const UNKNOWN_CALLER: Caller = { address: '', vouch: () => undefined }

export interface AdmissionOptions {
  readonly access: Access
  readonly limits: Limits
  readonly log: Logger
  readonly monotonic: () => number
  /** Pending while the server starts; undefined afterwards. */
  readonly starting: () => Promise<void> | undefined
}

export interface Entry {
  readonly caller: Caller
  /** The agent that is called. */
  readonly agent?: string | undefined
}

/** Told of credentials that arrive later than the request. */
export interface CredentialsWatch {
  readonly onAccepted: (principal: Principal) => void
  readonly onWrong: () => void
}

const MINUTE_MS = 60_000

/** Asks `Access` for every route and socket that is not public, and bounds how often callers may ask. */
export class Admission {
  readonly #options: AdmissionOptions
  /** By `shareKey`. */
  readonly #requests: RateLimiter
  /** Requests to public routes, by address. */
  readonly #publicRequests: RateLimiter
  /** By address. */
  readonly #wrongTokens: RateLimiter
  #loggedAt = -Infinity

  constructor(options: AdmissionOptions) {
    const { limits, monotonic } = options
    this.#options = options
    this.#requests = new RateLimiter({ perSecond: limits.requestsPerSecond, burst: limits.requestBurst, monotonic })
    this.#publicRequests = new RateLimiter({ perSecond: limits.strangerRequestsPerSecond, burst: limits.strangerRequestBurst, monotonic })
    this.#wrongTokens = new RateLimiter({ perSecond: limits.wrongTokensPerSecond, burst: limits.wrongTokenBurst, monotonic })
  }

  /** Remaining quota; meaningless without a principal. */
  quota(principal: Principal | undefined, address: string): Quota {
    return this.#requests.left(principal ? shareKey(principal, address) : '')
  }

  /** The principal of a request. Rejects a caller who may not call; `optional` gives undefined if there are no credentials. */
  admit(credentials: Credentials, entry: Entry): Promise<Principal>
  admit(credentials: Credentials, entry: Entry, optional: boolean): Promise<Principal | undefined>
  async admit(credentials: Credentials, { caller, agent }: Entry, optional = false): Promise<Principal | undefined> {
    const { access, starting } = this.#options
    const started = starting()
    if (started) await started
    const principal = await this.#authenticate(credentials, caller)
    if (principal === undefined) {
      if (optional && bearerToken(credentials) === undefined) return undefined
      throw new UampError('unauthorized', 'This needs a valid token')
    }
    this.#let(principal, caller)
    if (agent !== undefined && !access.authorize(principal, 'call', agent)) {
      throw new UampError('forbidden', `This token may not call ${agent}`)
    }
    return principal
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
  async refusePublic(credentials: Credentials, caller: Caller): Promise<UampError | undefined> {
    const wait = this.#publicRequests.take(addressKey(caller.address))
    if (wait === 0) return undefined
    const hasToken = bearerToken(credentials) !== undefined
    if (hasToken && (await this.#authenticate(credentials, caller)) !== undefined) return undefined
    return tooMany('Too many requests come from this address', wait)
  }

  /** `Access` for tokens that come later, in a message or a body. Wrong ones count like those in headers. */
  accessOf(caller: Caller, watch?: CredentialsWatch): Access {
    const { access } = this.#options
    return {
      schemes: access.schemes,
      authorize: (principal, action, agent) => access.authorize(principal, action, agent),
      authenticate: async (credentials) => {
        try {
          const principal = await this.#authenticate(credentials, caller)
          if (principal) watch?.onAccepted(principal)
          else if (credentials.token !== undefined) watch?.onWrong()
          return principal
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
  async #authenticate(credentials: Credentials, caller: Caller): Promise<Principal | undefined> {
    const principal = await this.#options.access.authenticate(credentials)
    if (principal !== undefined || bearerToken(credentials) === undefined) return principal
    const wait = this.#wrongTokens.take(addressKey(caller.address))
    if (wait === 0) return undefined
    this.#logGuessing(caller.address)
    throw tooMany('Too many wrong tokens come from this address', wait)
  }

  /** At most once a minute, so that an attacker cannot fill the log. */
  #logGuessing(address: string): void {
    const { log, monotonic } = this.#options
    const at = monotonic()
    if (at - this.#loggedAt < MINUTE_MS) return
    this.#loggedAt = at
    log('warn', 'Many wrong tokens come from one address', { address })
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
  return `${principal.tenant}\n${principal.id}${isAnonymous(principal) ? `\n${addressKey(address)}` : ''}`
}

/** The key of one caller. An IPv6 customer has a whole /64, and can use another address for every request. */
export function addressKey(address: string): string {
  // Asked for every request: most addresses are IPv4, and need no parsing.
  if (/^\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(address)) return address
  const plain = plainAddress(address) ?? ''
  return plain.includes(':') ? plain.split(':').slice(0, 4).join(':') : plain
}

/** The most buckets. Beyond it, full ones go first, then the oldest. */
const MOST_BUCKETS = 10_000
/** How many stay. The room for more saves a crowd of new keys from looking at all buckets each time. */
const KEPT_BUCKETS = 9_000

/** One token bucket per key. */
export class RateLimiter {
  readonly #rate: Rate
  readonly #buckets = new Map<string, Bucket>()

  constructor(rate: Rate) {
    this.#rate = rate
  }

  /** Takes one token: 0 if there was one, else the seconds until there is. */
  take(key: string): number {
    const bucket = this.#buckets.get(key) ?? this.#add(key)
    const { left } = bucket
    if (left < 1) return (1 - left) / this.#rate.perSecond
    bucket.take(1)
    return 0
  }

  left(key: string): Quota {
    const { perSecond, burst } = this.#rate
    const tokens = this.#buckets.get(key)?.left ?? burst
    return { limit: burst, remaining: Math.floor(tokens), resetMs: Math.ceil(((burst - tokens) / perSecond) * 1000) }
  }

  #add(key: string): Bucket {
    if (this.#buckets.size >= MOST_BUCKETS) this.#prune()
    const bucket = new Bucket(this.#rate)
    this.#buckets.set(key, bucket)
    return bucket
  }

  #prune(): void {
    for (const [key, bucket] of this.#buckets) if (bucket.left >= this.#rate.burst) this.#buckets.delete(key)
    for (const key of this.#buckets.keys()) {
      if (this.#buckets.size <= KEPT_BUCKETS) return
      this.#buckets.delete(key)
    }
  }
}
