import { UampError } from '../../protocol/errors.ts'
import { goesWith, idIn, storeKey } from '../basics/store-key.ts'
import type { Keys } from '../ports/keys.ts'
import type { Place as Listed, SetOptions, Store } from '../ports/store.ts'
import { hidden } from '../secrets/sealing.ts'
import type { AgentStateOptions, StateSession } from './agent-state.ts'

/** Where the values of one shelf are, as JSON text. */
export interface Place {
  /** Differs from that of every other shelf. */
  readonly id: string
  read(key: string): Promise<{ readonly text: string; readonly version: number } | undefined>
  /** With a version, rejects with `conflict` if the value has another one; 0: if there is a value. */
  write(key: string, text: string, version?: number): Promise<void>
  remove(key: string, version?: number): Promise<void>
  count(): Promise<number>
  names(most: number): Promise<readonly string[]>
}

/** The kinds of records, which are the second part of their keys. */
export const STATE = { session: 'session-state', principal: 'principal-state', agent: 'agent-state' } as const

export function sessionPlace(options: AgentStateOptions, { id, owner: { tenant } }: StateSession): Place {
  return new StoredPlace(options, [tenant, STATE.session, id], { index: [[goesWith(tenant, id), '']] })
}

export function principalPlace(options: AgentStateOptions, { agent, owner: { tenant, id } }: StateSession): Place {
  return new StoredPlace(options, [tenant, STATE.principal, id, agent], { ttlMs: options.limits.stateTtlMs })
}

export function agentPlace(options: AgentStateOptions, { agent, owner: { tenant } }: StateSession): Place {
  return new StoredPlace(options, [tenant, STATE.agent, agent], {})
}

/** When a record was last written, by the sort key of its own index. */
export function writtenAt(index: Readonly<Record<string, string>>): number | undefined {
  const [, sort] = Object.entries(index).find(([name]) => name.includes('-state/')) ?? []
  const at = Number(sort)
  return Number.isFinite(at) && at > 0 ? at : undefined
}

class StoredPlace implements Place {
  readonly id: string
  readonly #store: Store
  readonly #keys: Keys | undefined
  readonly #now: () => number
  readonly #more: Pick<SetOptions, 'index' | 'ttlMs'>

  constructor({ store, keys, now }: AgentStateOptions, path: readonly [string, ...string[]], more: Pick<SetOptions, 'index' | 'ttlMs'>) {
    this.id = storeKey(...path)
    this.#store = store
    this.#keys = keys
    this.#now = now
    this.#more = more
  }

  async read(name: string) {
    const key = this.#key(name)
    const stored = await this.#store.get(key)
    const text = typeof stored?.value === 'string' ? stored.value : undefined
    if (!stored || text === undefined) return undefined
    // JSON text never begins as a sealed one does.
    const opened = text.startsWith('uamp-sealed-') && this.#keys ? this.#keys.open(text, key) : text
    return { text: opened, version: stored.version }
  }

  async write(name: string, text: string, version?: number): Promise<void> {
    const key = this.#key(name)
    const index: Listed[] = [[this.id, String(this.#now()).padStart(15, '0')], ...(this.#more.index ?? [])]
    const options = { ...this.#more, index, ...(version !== undefined && { ifVersion: version }) }
    await this.#store.set(key, this.#sealed(text, key), options)
  }

  async remove(name: string, version?: number): Promise<void> {
    const key = this.#key(name)
    if (version === undefined) await this.#store.delete(key)
    else await this.#store.batch([{ op: 'delete', key, ifVersion: version }])
  }

  count(): Promise<number> {
    return this.#store.count(this.id)
  }

  async names(most: number): Promise<string[]> {
    const { items } = await this.#store.keys(this.id, { limit: most })
    return items.map(({ key }) => idIn(key)).sort()
  }

  #key(name: string): string {
    return `${this.id}/${storeKey(name)}`
  }

  /** All of it, because nobody but the agent knows what is secret. */
  #sealed(text: string, key: string): string {
    if (this.#keys) return this.#keys.seal(text, key)
    const value: unknown = JSON.parse(text)
    if (hidden(value) === value) return text
    throw new UampError('not_supported', 'This holds a secret, and there is no key to seal it with: give the gateway `keys`')
  }
}

/** For a session that is not stored: it ends with the session. `hold` counts the bytes, and throws if there is no room. */
export function memoryPlace(hold: (bytes: number) => void): Place {
  const values = new Map<string, { readonly text: string; readonly version: number }>()
  const place = `memory ${crypto.randomUUID()}`
  let [bytes, versions] = [0, 0]
  const expect = (key: string, version: number | undefined): void => {
    if (version !== undefined && version !== (values.get(key)?.version ?? 0)) throw new UampError('conflict', 'The value has changed')
  }
  const size = (key: string): number => (values.has(key) ? 2 * (key.length + (values.get(key)?.text.length ?? 0)) : 0)
  return {
    id: place,
    read: (key) => Promise.resolve(values.get(key)),
    write: async (key, text, version) => {
      expect(key, version)
      const now = bytes - size(key) + 2 * (key.length + text.length)
      hold(now)
      bytes = now
      values.set(key, { text, version: ++versions })
    },
    remove: async (key, version) => {
      expect(key, version)
      hold((bytes -= size(key)))
      values.delete(key)
    },
    count: () => Promise.resolve(values.size),
    names: () => Promise.resolve([...values.keys()].sort()),
  }
}
