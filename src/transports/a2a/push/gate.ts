/** Lets so many calls run at a time; the others wait in their order. How many can wait is bounded by the number of outboxes. */
class Gate {
  readonly #waiting: (() => void)[] = []
  readonly #places: number
  #free: number

  constructor(places: number) {
    this.#free = places
    this.#places = places
  }

  get idle(): boolean {
    return this.#free === this.#places
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--
    else await new Promise<void>((resolve) => this.#waiting.push(resolve))
    try {
      return await work()
    } finally {
      const next = this.#waiting.shift()
      if (next) next()
      else this.#free++
    }
  }
}

/** Lets so many calls run at a time in all, and so many of each owner, so that slow webhooks of one owner do not block those of others. */
export class Gates {
  readonly #all: Gate
  readonly #each: number
  readonly #owners = new Map<string, Gate>()

  constructor({ requests, requestsPerOwner }: { readonly requests: number; readonly requestsPerOwner: number }) {
    this.#all = new Gate(requests)
    this.#each = requestsPerOwner
  }

  async run<T>(owner: string, work: () => Promise<T>): Promise<T> {
    const gate = this.#owners.get(owner) ?? new Gate(this.#each)
    this.#owners.set(owner, gate)
    try {
      return await gate.run(() => this.#all.run(work))
    } finally {
      if (gate.idle) this.#owners.delete(owner)
    }
  }
}
