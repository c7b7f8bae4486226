import { bearerToken } from '../auth/bearer.ts'
import type { Access, Credentials, Principal } from '../core/ports/access.ts'
import type { Quota } from '../core/ports/transport.ts'
import { UampError } from '../protocol/errors.ts'
import type { RateLimiter } from './rate.ts'

export interface AdmissionOptions {
  readonly access: Access
  readonly rate: RateLimiter
  /** What has to happen before anybody is let in; undefined once it has. */
  readonly starting: () => Promise<void> | undefined
}

/** One question to `Access` for every route and socket that is not public. */
export class Admission {
  readonly access: Access
  readonly #rate: RateLimiter
  readonly #starting: () => Promise<void> | undefined

  constructor({ access, rate, starting }: AdmissionOptions) {
    this.access = access
    this.#rate = rate
    this.#starting = starting
  }

  /** What is left of a principal's requests. Of nobody's there is nothing to say, and nobody asks. */
  quota(principal: Principal | undefined): Quota {
    return this.#rate.left(principal ? principalKey(principal) : '')
  }

  /** Who it is. Rejects when that is nobody who may call; `optional`: nobody yet, if there are no credentials. */
  admit(credentials: Credentials, agent: string | undefined): Promise<Principal>
  admit(credentials: Credentials, agent: string | undefined, optional: boolean): Promise<Principal | undefined>
  async admit(credentials: Credentials, agent: string | undefined, optional = false): Promise<Principal | undefined> {
    const starting = this.#starting()
    if (starting) await starting
    const principal = await this.access.authenticate(credentials)
    if (principal === undefined) {
      if (optional && bearerToken(credentials) === undefined) return undefined
      throw new UampError('unauthorized', 'This needs a valid token')
    }
    const wait = this.#rate.take(principalKey(principal))
    if (wait > 0) throw new UampError('rate_limited', 'Too many requests', { details: { retry_after: wait } })
    if (agent !== undefined && !this.access.authorize(principal, 'call', agent)) {
      throw new UampError('forbidden', `This token may not call ${agent}`)
    }
    return principal
  }
}

export function principalKey({ tenant, id }: Principal): string {
  return `${tenant}/${id}`
}
