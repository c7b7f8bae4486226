import type { Records } from '../durable/records.ts'
import type { StoredTurns } from '../durable/stored-turns.ts'
import type { Principal } from '../ports/access.ts'
import type { OpenSessions } from './open-sessions.ts'

export interface RemovalParts {
  readonly records: Records
  readonly turns: StoredTurns
  readonly sessions: OpenSessions
  /** Resolves when nobody reads this session from the store. Undefined: nobody does. */
  readonly loading: (id: string) => Promise<unknown> | undefined
}

/** Removes sessions and responses from the store. Nobody finds a session meanwhile: they would write what is being removed. */
export class Removals {
  readonly #parts: RemovalParts
  readonly #running = new Map<string, Promise<unknown>>()

  constructor(parts: RemovalParts) {
    this.#parts = parts
  }

  /** Resolves when nothing removes this session. Undefined: nothing does. */
  underWay(tenant: string, id: string): Promise<unknown> | undefined {
    return this.#running.get(`${tenant} ${id}`)
  }

  /** Removes a session that is not in memory. False: it is. */
  unused(tenant: string, id: string): Promise<boolean> {
    const { records, sessions, loading } = this.#parts
    return this.#run(tenant, id, async () => {
      if (sessions.get(tenant, id) || loading(id)) return false
      await records.removeSession(tenant, id)
      return true
    })
  }

  /** Ends a session and removes it. */
  session(tenant: string, id: string): Promise<void> {
    const { records, sessions, loading } = this.#parts
    return this.#run(tenant, id, async () => {
      await loading(id)
      await sessions.get(tenant, id)?.end('deleted')
      await records.removeSession(tenant, id)
    })
  }

  /** Removes a response, and its session with the last one. False: there is no such response. */
  async response(id: string, principal: Principal): Promise<boolean> {
    const { turns, sessions, loading } = this.#parts
    const { tenant } = principal
    const turn = await turns.find(id, principal)
    if (!turn) return false
    return this.#run(tenant, turn.session, async () => {
      await loading(turn.session)
      const session = sessions.get(tenant, turn.session)
      await session?.forget(id)
      await session?.flush()
      return turns.remove(id, principal, () => this.#endsWith(id, { tenant, session: turn.session }))
    })
  }

  /** Ends the session if this is its only response. False: another one has begun. */
  #endsWith(response: string, { tenant, session: id }: { readonly tenant: string; readonly session: string }): boolean {
    const { sessions } = this.#parts
    const session = sessions.get(tenant, id)
    if (session && (session.responding || session.lastResponse !== response)) return false
    if (session) sessions.unload(session, 'ended')
    return true
  }

  /** One after the other. What `remove` does before it first waits, it does before anybody else finds the session. */
  async #run<T>(tenant: string, id: string, remove: () => Promise<T>): Promise<T> {
    const key = `${tenant} ${id}`
    for (let before = this.#running.get(key); before; before = this.#running.get(key)) await before
    const removal = remove()
    const over = removal.then(
      () => undefined,
      () => undefined,
    )
    this.#running.set(key, over)
    try {
      return await removal
    } finally {
      this.#running.delete(key)
    }
  }
}
