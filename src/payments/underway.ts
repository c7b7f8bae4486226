import type { Asked, Authorisation, Refusal, Settlement } from '../core/ports/payments.ts'

/**
 * `authorised`: the money is locked. `settling`: somebody elsewhere is asked to move it. `settled`: it has moved. `released`: nobody could
 * say that it moved, and it can move no more. Money that was locked and is given back leaves nothing to look at.
 */
type PaymentState = 'authorised' | 'settling' | 'settled' | 'released'

/** A payment, as far as it can be looked at: what it is for, and how it stands. */
export interface PaymentFacts {
  readonly id: string
  readonly state: PaymentState
  readonly amount: bigint
  readonly currency: string
  readonly principal?: string | undefined
  readonly agent?: string | undefined
  readonly session?: string | undefined
  readonly response?: string | undefined
  readonly question?: string | undefined
  /** Milliseconds since 1970. */
  readonly at?: number | undefined
}

interface Known {
  readonly asked: Asked
  readonly lock: Authorisation
  readonly at: number
  /** What is about to move. Undefined: it is locked so far. */
  moving?: bigint
}

/** The payments of the turns that run. They are in memory, as their locks are. */
export class Underway {
  readonly #now: () => number
  readonly #known = new Map<string, Known>()

  constructor(now: () => number) {
    this.#now = now
  }

  /** Knows of a payment until it has ended. */
  follow<F extends Authorisation | Refusal | undefined>(asked: Asked, found: F): F | Authorisation {
    if (!found || 'refused' in found) return found
    const known: Known = { asked, lock: found, at: this.#now() }
    this.#known.set(found.id, known)
    return new Followed(known, () => this.#known.delete(found.id))
  }

  find(tenant: string, id: string): PaymentFacts | undefined {
    const known = this.#known.get(id)
    if (known?.asked.principal.tenant !== tenant) return undefined
    const { asked, lock, moving, at } = known
    const { principal, agent, session, response, question, currency } = asked
    const state = moving === undefined ? 'authorised' : 'settling'
    return { id, state, amount: moving ?? lock.locked, currency, principal: principal.id, agent, session, response, question, at }
  }
}

class Followed implements Authorisation {
  readonly #known: Known
  readonly #ended: () => void

  constructor(known: Known, ended: () => void) {
    this.#known = known
    this.#ended = ended
  }

  get id(): string {
    return this.#known.lock.id
  }

  get scheme(): string {
    return this.#known.lock.scheme
  }

  get currency(): string {
    return this.#known.lock.currency
  }

  get locked(): bigint {
    return this.#known.lock.locked
  }

  get balance(): bigint | undefined {
    return this.#known.lock.balance
  }

  get expiresAt(): number | undefined {
    return this.#known.lock.expiresAt
  }

  extend(amount: bigint): boolean | Promise<boolean> {
    return this.#known.lock.extend(amount)
  }

  settle(amount: bigint, description?: string): Settlement {
    const settlement = this.#known.lock.settle(amount, description)
    const ended = this.#ended
    const { outside, taken } = settlement
    this.#known.moving = taken ?? amount
    return {
      // What is to be stored may be known only when the money has moved elsewhere.
      get operations() {
        return settlement.operations
      },
      done(failure) {
        ended()
        settlement.done(failure)
      },
      outside,
      taken,
    }
  }
}
