import { credentialsEnded, isAnybody, isSamePrincipal } from '../../core/basics/principal.ts'
import type { Principal } from '../../core/ports/access.ts'
import type { LiveUse } from '../../core/ports/live.ts'
import type { Call, Host } from '../../core/ports/transport.ts'
import { identify, refreshed } from './open.ts'

/**
 * Who a connection belongs to: whoever opened it, or else whoever showed the first token on it. Sessions that bring no token of their
 * own are theirs.
 */
export class Owner {
  readonly #host: Pick<Host, 'live'>
  readonly #call: Pick<Call, 'access'>
  #principal: Principal | undefined
  /** The connection has acted as `#principal`: from then on even an anonymous caller stays the same. */
  #fixed = false
  #lost: string | undefined
  readonly #use: LiveUse
  #unwatch: () => void

  /** `onLost`: called when the credentials end. */
  constructor(host: Pick<Host, 'live'>, call: Pick<Call, 'access' | 'principal'>, onLost: () => void) {
    this.#host = host
    this.#call = call
    this.#principal = call.principal
    this.#use = {
      principal: () => this.known,
      cut: (reason) => {
        this.#lost = reason
        onLost()
      },
    }
    this.#unwatch = host.live.add(this.#use)
  }

  /** The principal, as long as their credentials are good. */
  get known(): Principal | undefined {
    return this.#lost === undefined ? this.#principal : undefined
  }

  /** Why the credentials ended. Sessions of others go on. */
  get lost(): string | undefined {
    return this.#lost
  }

  /** The connection acts as this principal from now on. */
  fix(): void {
    this.#fixed = true
  }

  /** Whose session is opened. The first token also says who the connection belongs to, unless its upgrade did. */
  async openedWith(token: string | undefined): Promise<Principal> {
    if (token === undefined && this.#lost !== undefined) throw credentialsEnded(this.#lost)
    const principal = await identify(this.#call.access, token, this.#principal)
    if (!(await this.#isSettled())) this.#set(principal)
    this.#fixed = true
    return principal
  }

  /** The same principal by a newer token, also after the last one ended. */
  async refresh(token: string): Promise<Principal> {
    const known = this.#principal
    const { access } = this.#call
    const settled = await this.#isSettled()
    const principal = await (settled && known ? refreshed(access, token, known) : identify(access, token, undefined))
    this.#set(principal)
    this.#fixed = true
    return principal
  }

  owns(principal: Principal): boolean {
    return this.known !== undefined && isSamePrincipal(this.known, principal)
  }

  close(): void {
    this.#unwatch()
  }

  #set(principal: Principal): void {
    this.#principal = principal
    this.#lost = undefined
    this.#unwatch = this.#host.live.add(this.#use)
  }

  /** Whether it is known who the connection belongs to. An anonymous caller may still show a token, unless they have acted already. */
  async #isSettled(): Promise<boolean> {
    return this.#principal !== undefined && (this.#fixed || !(await isAnybody(this.#call.access, this.#principal)))
  }
}
