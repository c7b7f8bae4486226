import type { Principal } from '../../../core/ports/access.ts'
import type { GuardedHttp } from '../../../core/ports/http.ts'
import type { Keys } from '../../../core/ports/keys.ts'
import type { Store } from '../../../core/ports/store.ts'
import { storeKey } from '../../../core/basics/store-key.ts'
import { UampError } from '../../../protocol/errors.ts'
import { fieldsOf, type Json } from '../../../protocol/json.ts'
import { a2aError } from '../errors.ts'
import type { Generation, NewPushConfig, PushConfig } from '../model.ts'
import type { PushLimits } from './limits.ts'

/** What may stand in a header. A line break would begin another one. */
const HEADER_TEXT = /^[\x20-\x7e]*$/
const SCHEME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const ID_LENGTH = 256

/** Throws `INVALID_PARAMS` for a config that could never be used, or not safely. The error names no secret. */
export function checkConfig(config: Omit<NewPushConfig, 'taskId'>, outbound: GuardedHttp, { textLength }: PushLimits): void {
  const { id = '', url, token = '', authentication } = config
  const { scheme, credentials = '' } = authentication ?? {}
  const texts = { url, id, token, 'authentication.scheme': scheme ?? '', 'authentication.credentials': credentials }
  for (const [field, text] of Object.entries(texts)) {
    const max = field === 'id' ? ID_LENGTH : textLength
    if (text.length > max) throw invalid(`"${field}" may have ${max} characters`, field)
    if (field !== 'url' && !HEADER_TEXT.test(text)) throw invalid(`"${field}" may have only visible ASCII characters`, field)
  }
  const reason = outbound.refuses(url)
  if (reason !== undefined) throw invalid(`The webhook cannot be called: ${reason}`, 'url')
  if (scheme !== undefined && !SCHEME.test(scheme)) {
    throw invalid('"authentication.scheme" must be the name of an HTTP authentication scheme', 'authentication.scheme')
  }
}

function invalid(message: string, field: string): Error {
  return a2aError('INVALID_PARAMS', message, { field })
}

/** A config with the generation whose method set it: its notifications have that shape. Earlier versions did not note it. */
export interface KeptConfig extends PushConfig {
  readonly generation?: Generation
}

export interface ListRequest {
  readonly taskId: string
  /** Default: all of them, as a task may have only so many. */
  readonly pageSize?: number | undefined
  readonly pageToken?: string | undefined
}

export interface ConfigPage {
  readonly configs: readonly PushConfig[]
  /** Empty on the last page. */
  readonly nextPageToken: string
}

interface ConfigRecordsOptions {
  readonly store: Store
  readonly keys: Keys
  readonly limits: PushLimits
}

type Change = (configs: readonly KeptConfig[]) => readonly KeptConfig[]

const LARGEST_PAGE = 100
/** Writers of one task's configs that may come in between before this one gives up. */
const TRIES = 64

/**
 * The configs of a task are one record: there are few, and the first event of a task reads them all. The record is sealed as a whole,
 * because often the address is as secret as the token and the credentials.
 */
export class ConfigRecords {
  readonly #store: Store
  readonly #keys: Keys
  readonly #limits: PushLimits

  constructor({ store, keys, limits }: ConfigRecordsOptions) {
    this.#store = store
    this.#keys = keys
    this.#limits = limits
  }

  /** In the order in which they were first set. */
  async all(owner: Principal, taskId: string): Promise<readonly KeptConfig[]> {
    return (await this.#read(owner, taskId)).configs
  }

  /** Replaces a config of the same id. Returns all that the task has then. */
  set(owner: Principal, config: KeptConfig): Promise<readonly KeptConfig[]> {
    return this.#update(owner, config.taskId, (configs) => {
      const place = configs.findIndex(({ id }) => id === config.id)
      if (place >= 0) return configs.with(place, config)
      if (configs.length >= this.#limits.configs) {
        const message = `A task may have ${this.#limits.configs} push notification configs: delete one first`
        throw a2aError('INVALID_PARAMS', message, { limit: this.#limits.configs })
      }
      return [...configs, config]
    })
  }

  /** Returns those that are left. It is no error to delete a config that does not exist. */
  delete(owner: Principal, { taskId, id }: Pick<PushConfig, 'taskId' | 'id'>): Promise<readonly KeptConfig[]> {
    return this.#update(owner, taskId, (configs) =>
      configs.some((config) => config.id === id) ? configs.filter((config) => config.id !== id) : configs,
    )
  }

  async page(owner: Principal, { taskId, pageSize, pageToken = '' }: ListRequest): Promise<ConfigPage> {
    if (pageSize !== undefined && (!Number.isInteger(pageSize) || pageSize < 1 || pageSize > LARGEST_PAGE)) {
      throw a2aError('INVALID_PARAMS', `"pageSize" must be a whole number from 1 to ${LARGEST_PAGE}`, { field: 'pageSize' })
    }
    const all = await this.all(owner, taskId)
    // The token is the last id of the page before, which stays right when others come and go.
    const from = pageToken === '' ? 0 : all.findIndex(({ id }) => id === pageToken) + 1
    if (pageToken !== '' && from === 0) throw a2aError('INVALID_PARAMS', '"pageToken" is not of this list', { field: 'pageToken' })
    const configs = all.slice(from, pageSize === undefined ? undefined : from + pageSize)
    return { configs: configs.map(shown), nextPageToken: from + configs.length >= all.length ? '' : (configs.at(-1)?.id ?? '') }
  }

  async #update(owner: Principal, taskId: string, change: Change): Promise<readonly KeptConfig[]> {
    for (let tries = 1; ; tries++) {
      const { configs, version } = await this.#read(owner, taskId)
      const changed = change(configs)
      if (changed === configs) return configs
      try {
        const options = { ifVersion: version, ttlMs: this.#limits.ttlMs }
        const key = keyOf(owner, taskId)
        await this.#store.set(key, { sealed: this.#keys.seal(JSON.stringify(changed), key) }, options)
        return changed
      } catch (thrown) {
        if (!(thrown instanceof UampError && thrown.code === 'conflict') || tries >= TRIES) throw thrown
      }
    }
  }

  async #read(owner: Principal, taskId: string): Promise<{ configs: readonly KeptConfig[]; version: number }> {
    const key = keyOf(owner, taskId)
    const { value = [], version = 0 } = (await this.#store.get(key)) ?? {}
    const { sealed } = fieldsOf(value)
    // Earlier versions did not seal them.
    const configs = typeof sealed === 'string' ? (JSON.parse(this.#keys.open(sealed, key)) as Json) : value
    return { configs: configs as unknown as readonly KeptConfig[], version }
  }
}

/** A config as clients know it. */
export function shown({ generation: _, ...config }: KeptConfig): PushConfig {
  return config
}

function keyOf({ tenant, id }: Principal, taskId: string): string {
  return storeKey(tenant, 'a2a-push', id, taskId)
}
