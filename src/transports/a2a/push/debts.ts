import { onBehalfOf } from '../../../core/basics/principal.ts'
import type { Principal } from '../../../core/ports/access.ts'
import type { Store } from '../../../core/ports/store.ts'
import { storeKey } from '../../../core/basics/store-key.ts'
import { UampError } from '../../../protocol/errors.ts'
import type { Json } from '../../../protocol/json.ts'
import { TERMINAL, type TaskStatus } from '../model.ts'

/** A task whose webhooks have not been told yet how it ended. */
export interface Debt {
  readonly owner: Principal
  readonly taskId: string
  /** The time of the last resting status that they were told. */
  readonly told: string | undefined
}

interface DebtRecord {
  readonly tenant: string
  readonly owner: string
  readonly task: string
  readonly told?: string
}

const OWED = 'a2a-push-owed'

/**
 * Records of what webhooks are still to be told. Without them, a webhook would wait for ever after a crash. A record is written with
 * the first config of a task, so a task without webhooks costs nothing.
 */
export class Debts {
  readonly #store: Store
  readonly #ttlMs: number

  constructor(store: Store, ttlMs: number) {
    this.#store = store
    this.#ttlMs = ttlMs
  }

  /** From now on the task's webhooks have to be told of its end. A record that exists stays as it is. */
  async owe(owner: Principal, task: string): Promise<void> {
    try {
      await this.#set({ tenant: owner.tenant, owner: owner.id, task }, 0)
    } catch (thrown) {
      if (UampError.from(thrown).code !== 'conflict') throw thrown
    }
  }

  /** The task's webhooks were told this status, or were given up. */
  async settle(owner: Principal, task: string, { state, timestamp }: TaskStatus): Promise<void> {
    if (TERMINAL.has(state)) return this.forgive(owner, task)
    await this.#set({ tenant: owner.tenant, owner: owner.id, task, told: timestamp })
  }

  /** There is no webhook to be told any more. */
  async forgive(owner: Principal, task: string): Promise<void> {
    await this.#store.delete(keyOf(owner, task))
  }

  async *all(): AsyncGenerator<Debt, void> {
    for (let after: string | undefined; ;) {
      const page = await this.#store.list(OWED, after === undefined ? {} : { after })
      for (const { value } of page.items) {
        const { tenant, owner: id, task, told } = value as unknown as DebtRecord
        yield { owner: onBehalfOf(tenant, id), taskId: task, told }
      }
      if ((after = page.next) === undefined) return
    }
  }

  async #set(record: DebtRecord, ifVersion?: number): Promise<void> {
    const key = keyOf({ tenant: record.tenant, id: record.owner }, record.task)
    const options = { ttlMs: this.#ttlMs, index: [[OWED, key]] as const, ...(ifVersion !== undefined && { ifVersion }) }
    await this.#store.set(key, record as unknown as Json, options)
  }
}

function keyOf({ tenant, id }: Pick<Principal, 'tenant' | 'id'>, task: string): string {
  return storeKey(tenant, OWED, id, task)
}
