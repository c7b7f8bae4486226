/**
 * What a turn costs, by the keys of its charges, and what earlier responses have paid, by currency: written down when it waits, so that a
 * turn that is run again does not pay twice, and says all that it costs.
 */
export type Paid = Readonly<Record<string, string>>

/** The turn's call is one of the free ones. */
const FREE = 'free'

interface Charge {
  readonly currency: string
  readonly due: bigint
}

/** What earlier responses of a turn have paid. */
export class PaidBefore {
  readonly #paid: Paid

  constructor(paid: Paid = {}) {
    this.#paid = paid
  }

  /** For a charge. */
  of(charge: string): bigint {
    return BigInt(this.#paid[charge] ?? 0)
  }

  /** For everything in this currency. */
  in(currency: string): bigint {
    return this.of(earlier(currency))
  }

  get isFree(): boolean {
    return this.#paid[FREE] !== undefined
  }

  /** For the record of the turn. Undefined: nothing was paid. */
  get stored(): Paid | undefined {
    return Object.keys(this.#paid).length > 0 ? this.#paid : undefined
  }

  /** The same with what another response has paid. */
  with(charges: Iterable<readonly [key: string, charge: Charge]>): PaidBefore {
    const paid = { ...this.#paid }
    for (const [key, { currency, due }] of charges) {
      for (const name of [key, earlier(currency)]) paid[name] = `${BigInt(paid[name] ?? 0) + due}`
    }
    return new PaidBefore(paid)
  }

  withFreeCall(): PaidBefore {
    return new PaidBefore({ ...this.#paid, [FREE]: '0' })
  }
}

function earlier(currency: string): string {
  return `earlier ${currency}`
}
