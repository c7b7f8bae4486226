import type { Principal } from '../../../core/ports/access.ts'
import type { Keys } from '../../../core/ports/keys.ts'
import type { Store } from '../../../core/ports/store.ts'
import { storeKey } from '../../../core/basics/store-key.ts'
import { UampError } from '../../../protocol/errors.ts'
import { fieldsOf, type Json } from '../../../protocol/json.ts'
import { a2aError } from '../errors.ts'
import type { PushConfig } from '../model.ts'
import type { PushLimits } from './limits.ts'

export interface ListRequest {
  readonly taskId: string
  readonly pageSize?: number | undefined
  readonly pageToken?: string | undefined
}

/** Where configs are kept, and what they are sealed with. */
export interface Safe {
  readonly store: Store
  readonly keys: Keys
}

type Change = (configs: readonly PushConfig[]) => readonly PushConfig[]

const LARGEST_PAGE = 100
/** Writers of one task's configs that may come in between before this one gives up. */
const TRIES = 64

/**
 * The configs of a task are one record, as there are few: reading them all is what each event's first look costs. It is sealed as
 * a whole: not only the token and the credentials are secret, but often the address.
 */
export class ConfigRecords {
  readonly #safe: Safe
  readonly #limits: PushLimits

  constructor(safe: Safe, limits: PushLimits) {
    this.#safe = safe
    this.#limits = limits
  }

  /** In the order in which they were first set. */
  async all(owner: Principal, taskId: string): Promise<readonly PushConfig[]> {
    return (await this.#read(owner, taskId)).configs
  }

  /** One of the same id is replaced. */
  async set(owner: Principal, config: PushConfig): Promise<{ config: PushConfig; all: readonly PushConfig[] }> {
    const all = await this.#update(owner, config.taskId, (configs) => {
      const place = configs.findIndex(({ id }) => id === config.id)
      if (place >= 0) return configs.with(place, config)
      if (configs.length >= this.#limits.configs) {
        const message = `A task may have ${this.#limits.configs} push notification configs: delete one first`
        throw a2aError('INVALID_PARAMS', message, { limit: this.#limits.configs })
      }
      return [...configs, config]
    })
    return { config, all }
  }

  /** What is left. One that is not there is deleted already. */
  delete(owner: Principal, { taskId, id }: Pick<PushConfig, 'taskId' | 'id'>): Promise<readonly PushConfig[]> {
    return this.#update(owner, taskId, (configs) =>
      configs.some((config) => config.id === id) ? configs.filter((config) => config.id !== id) : configs,
    )
  }

  async page(owner: Principal, { taskId, pageSize = LARGEST_PAGE, pageToken = '' }: ListRequest) {
    if (!Number.isInteger(pageSize) || pageSize < 1 || pageSize > LARGEST_PAGE) {
      throw a2aError('INVALID_PARAMS', `"pageSize" must be a whole number from 1 to ${LARGEST_PAGE}`, { field: 'pageSize' })
    }
    const all = await this.all(owner, taskId)
    // The last id of the page before: it stays right when others come and go.
    const last = pageToken === '' ? -1 : all.findIndex(({ id }) => id === pageToken)
    if (pageToken !== '' && last < 0) throw a2aError('INVALID_PARAMS', '"pageToken" is not of this list', { field: 'pageToken' })
    const configs = all.slice(last + 1, last + 1 + pageSize)
    const isLast = last + 1 + pageSize >= all.length
    return { configs, nextPageToken: isLast ? '' : (configs.at(-1)?.id ?? '') }
  }

  async #update(owner: Principal, taskId: string, change: Change): Promise<readonly PushConfig[]> {
    for (let tries = 1; ; tries++) {
      const { configs, version } = await this.#read(owner, taskId)
      const changed = change(configs)
      if (changed === configs) return configs
      try {
        const options = { ifVersion: version, ttlMs: this.#limits.ttlMs }
        const key = keyOf(owner, taskId)
        await this.#safe.store.set(key, { sealed: this.#safe.keys.seal(JSON.stringify(changed), key) }, options)
        return changed
      } catch (thrown) {
        if (!(thrown instanceof UampError && thrown.code === 'conflict') || tries >= TRIES) throw thrown
      }
    }
  }

  async #read(owner: Principal, taskId: string): Promise<{ configs: readonly PushConfig[]; version: number }> {
    const key = keyOf(owner, taskId)
    const { value = [], version = 0 } = (await this.#safe.store.get(key)) ?? {}
    const { sealed } = fieldsOf(value)
    // Earlier versions stored them as they were.
    const configs = typeof sealed === 'string' ? (JSON.parse(this.#safe.keys.open(sealed, key)) as Json) : value
    return { configs: configs as unknown as readonly PushConfig[], version }
  }
}

function keyOf({ tenant, id }: Principal, taskId: string): string {
  return storeKey(tenant, 'a2a-push', id, taskId)
}
