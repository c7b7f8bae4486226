import { bearerToken } from '../auth/bearer.ts'
import type { Access, Action, Credentials, Principal } from '../core/ports/access.ts'
import type { Quota } from '../core/ports/transport.ts'
import { UampError } from '../protocol/errors.ts'
import { addressKey } from './address.ts'
import type { Caller } from './caller.ts'
import type { RateLimiter } from './rate.ts'

export interface AdmissionOptions {
  readonly access: Access
  readonly rate: RateLimiter
  /** Counts requests to public routes, by address. */
  readonly publicRate: RateLimiter
  /** Counts wrong tokens, by address. */
  readonly wrongTokens: RateLimiter
  /** Told of an address that has shown too many. */
  readonly onGuessing: (address: string) => void
  /** What has to happen before anybody is let in; undefined once it has. */
  readonly starting: () => Promise<void> | undefined
}

export interface Entry {
  readonly caller: Caller
  /** The agent that is called. */
  readonly agent?: string | undefined
}

/** One question to `Access` for every route and socket that is not public. */
export class Admission {
  readonly #options: AdmissionOptions

  constructor(options: AdmissionOptions) {
    this.#options = options
  }

  /** Remaining quota; meaningless without a principal. */
  quota(principal: Principal | undefined): Quota {
    return this.#options.rate.left(principal ? principalKey(principal) : '')
  }

  /** Who it is. Rejects when that is nobody who may call; `optional`: nobody yet, if there are no credentials. */
  admit(credentials: Credentials, entry: Entry): Promise<Principal>
  admit(credentials: Credentials, entry: Entry, optional: boolean): Promise<Principal | undefined>
  async admit(credentials: Credentials, { caller, agent }: Entry, optional = false): Promise<Principal | undefined> {
    const { access, rate, starting } = this.#options
    const started = starting()
    if (started) await started
    const principal = await this.authenticate(credentials, caller)
    if (principal === undefined) {
      if (optional && bearerToken(credentials) === undefined) return undefined
      throw new UampError('unauthorized', 'This needs a valid token')
    }
    caller.vouch(principal)
    const wait = rate.take(principalKey(principal))
    if (wait > 0) throw new UampError('rate_limited', 'Too many requests', { details: { retry_after: wait } })
    if (agent !== undefined && !access.authorize(principal, 'call', agent)) {
      throw new UampError('forbidden', `This token may not call ${agent}`)
    }
    return principal
  }

  /**
   * Why a public route does not answer this request, if it does not: too many come from its address. Whoever shows a valid token is
   * answered, because a stranger who shares their address must not shut them out.
   */
  async refusePublic(credentials: Credentials, caller: Caller): Promise<UampError | undefined> {
    const wait = this.#options.publicRate.take(addressKey(caller.address))
    if (wait === 0) return undefined
    const hasToken = bearerToken(credentials) !== undefined
    if (hasToken && (await this.authenticate(credentials, caller)) !== undefined) return undefined
    return new UampError('rate_limited', 'Too many requests come from this address', { details: { retry_after: wait } })
  }

  /** `Access` for a transport whose caller shows a token later, in a message or a body. Wrong ones count as those in headers do. */
  accessOf(caller: Caller): Access {
    return {
      schemes: this.schemes,
      authenticate: (credentials) => this.authenticate(credentials, caller),
      authorize: (principal, action, agent) => this.authorize(principal, action, agent),
    }
  }

  get schemes(): Access['schemes'] {
    return this.#options.access.schemes
  }

  authorize(principal: Principal, action: Action, agent: string): boolean {
    return this.#options.access.authorize(principal, action, agent)
  }

  /**
   * Only what is wrong is throttled. A whole office, or everybody behind a proxy that is not named in `trustProxy`, has one address:
   * if it were locked, any stranger there could keep the others out.
   */
  async authenticate(credentials: Credentials, caller: Caller): Promise<Principal | undefined> {
    const { access, wrongTokens, onGuessing } = this.#options
    const principal = await access.authenticate(credentials)
    if (principal !== undefined || bearerToken(credentials) === undefined) return principal
    const wait = wrongTokens.take(addressKey(caller.address))
    if (wait === 0) return undefined
    onGuessing(caller.address)
    throw new UampError('rate_limited', 'Too many wrong tokens come from this address', { details: { retry_after: wait } })
  }
}

export function principalKey({ tenant, id }: Principal): string {
  return `${tenant}/${id}`
}
