import { storeKey } from '../../../core/basics/store-key.ts'
import { expiryClock } from '../../../core/basics/time.ts'
import type { Principal } from '../../../core/ports/access.ts'
import type { Host } from '../../../core/ports/transport.ts'
import { UampError } from '../../../protocol/errors.ts'
import type { OmniaLimits } from '../options.ts'
import { keyOf, type MediaRecord } from './record.ts'

/** How many media of one kind a principal may have at a time. */
export class Allotment {
  readonly #kind: 'uploads' | 'replays'
  readonly #host: Host
  readonly #limits: OmniaLimits
  readonly #expiryTime: () => number
  /** Records of each principal that are being written: the store does not count these yet. */
  readonly #writing = new Map<string, number>()

  constructor(kind: 'uploads' | 'replays', host: Host, limits: OmniaLimits) {
    this.#kind = kind
    this.#host = host
    this.#limits = limits
    this.#expiryTime = expiryClock(host)
  }

  /** Writes a record. Rejects with `rate_limited` if its owner has too many. */
  async add(record: MediaRecord, principal: Principal): Promise<void> {
    const { mediaMs, uploadsPerPrincipal: most } = this.#limits
    const { store } = this.#host
    const index = storeKey(principal.tenant, 'omnia', this.#kind, principal.id)
    const writing = this.#writing.get(index) ?? 0
    this.#writing.set(index, writing + 1)
    try {
      const before = await store.count(index, { from: sortKey(this.#expiryTime() - mediaMs) })
      if (before + writing >= most) throw new UampError('rate_limited', `You may have ${most} ${this.#kind}`, { details: { limit: most } })
      // Kept longer than the bytes, so that a client that comes too late is told so.
      await store.set(keyOf(principal, record.id), { ...record }, { ttlMs: 2 * mediaMs, index: [[index, sortKey(record.createdAt)]] })
    } finally {
      const left = (this.#writing.get(index) ?? 1) - 1
      if (left > 0) this.#writing.set(index, left)
      else this.#writing.delete(index)
    }
  }
}

function sortKey(at: number): string {
  return String(Math.max(0, at)).padStart(15, '0')
}
