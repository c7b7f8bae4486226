// @ts-check

/**
 * What both load clients know of the response they are reading. Deltas are only counted: the client must be cheaper than the
 * server it measures. `check` switches to parsing every event, for one response before the measured ones.
 */
export class Tally {
  deltas = 0
  sentAt = 0
  firstAt = 0
  check = false
  /** @type {Pick<import('./dialects.js').Dialect, 'typeOf' | 'delta'>} */
  #dialect
  /** Calls `reached` at this delta. */
  mark = -1
  reached = () => {}
  /** @type {any[]} */
  seen = []
  /** @type {((value: { type: string, event: any }) => void) | undefined} */
  #resolve
  /** @type {((reason: Error) => void) | undefined} */
  #reject
  /** @type {(type: string) => boolean} */
  #until = () => false

  /** @param {Pick<import('./dialects.js').Dialect, 'typeOf' | 'delta'>} dialect */
  constructor(dialect) {
    this.#dialect = dialect
  }

  delta() {
    if (++this.deltas === 1) this.firstAt = performance.now()
    if (this.deltas === this.mark) this.reached()
  }

  /** @param {string} text an event that is not a delta, or any event while `check` is on */
  event(text) {
    const type = this.#dialect.typeOf(text)
    if (this.check && type === this.#dialect.delta) {
      this.seen.push(JSON.parse(text))
      return this.delta()
    }
    if (this.#until(type)) {
      this.#resolve?.({
        type,
        get event() {
          return JSON.parse(text)
        },
      })
    } else if (type.endsWith('error')) {
      this.fail(new Error(`the server answered ${text}`))
    }
  }

  /** @param {Error} error */
  fail(error) {
    this.#reject?.(error)
  }

  /** Resolves at the next event of one of these types. @param {...string} types @returns {Promise<{ type: string, event: any }>} */
  until(...types) {
    this.#until = (type) => types.includes(type)
    return new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
  }

  begin() {
    this.deltas = 0
    this.seen = []
    this.sentAt = performance.now()
  }
}

/** @param {string} type @param {object} [rest] */
export const message = (type, rest) => JSON.stringify({ type, event_id: crypto.randomUUID(), ...rest })
