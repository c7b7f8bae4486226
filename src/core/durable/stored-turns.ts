import { mayDo } from '../basics/principal.ts'
import type { Access, Principal } from '../ports/access.ts'
import type { Alias, StoredResponse, SessionSummary } from '../ports/session.ts'
import type { Records, TurnRecord } from './records.ts'
import type { Page, PageRequest } from '../ports/store.ts'

/** Finds and deletes stored responses. Those of other principals, and deleted ones, are not found. */
export class StoredTurns {
  readonly #records: Records

  constructor(records: Records) {
    this.#records = records
  }

  async find(id: string | Alias, principal: Principal): Promise<StoredResponse | undefined> {
    const record = await this.#own(id, principal)
    if (!record) return undefined
    const config = record.config ?? (await this.#records.session(record.tenant, record.session))?.session.config
    return {
      id: record.id,
      run: record.run,
      session: record.session,
      agent: record.agent,
      parent: record.parent,
      input: record.input,
      whole: record.stateless,
      questions: record.questions?.map(({ key: _, ...question }) => question) ?? [],
      given: record.given ?? [],
      output: record.output,
      status: record.status,
      error: record.error,
      usage: record.usage,
      config: config ?? { modalities: ['text'] },
      asked: record.asked,
      createdAt: record.createdAt,
      endedAt: record.endedAt,
      after: record.after,
      note: record.note,
    }
  }

  /**
   * Deletes a response. The session goes with its only response. If others continue from it, its content stays for them alone;
   * otherwise only its place in the chain stays.
   */
  async remove(id: string, principal: Principal, endSession: () => boolean): Promise<boolean> {
    const record = await this.#own(id, principal)
    if (!record) return false
    const { tenant, session } = record
    const [hasChildren, mates] = await Promise.all([this.#records.hasChildren(tenant, id), this.#records.turnsIn(tenant, session, 2)])
    if (!hasChildren && mates === 1 && endSession()) {
      await this.#records.removeSession(tenant, session)
      return true
    }
    const left: TurnRecord = hasChildren ? record : { ...record, input: [], output: [], given: [], questions: [], status: 'cancelled' }
    await this.#records.store.batch([this.#records.setTurn({ ...left, deleted: true })], { sync: true })
    return true
  }

  async #own(id: string | Alias, principal: Principal): Promise<TurnRecord | undefined> {
    const record = await (typeof id === 'string' ? this.#records.turn(principal.tenant, id) : this.#records.turnNamed(principal, id))
    return record?.owner === principal.id && !record.deleted ? record : undefined
  }
}

/** What to list. */
interface Listing extends PageRequest {
  /** Only sessions of this agent. */
  readonly agent?: string
  readonly access: Pick<Access, 'authorize'>
}

/** Lists the principal's sessions that have not ended, and whose agents they may read from, newest first. */
export async function listSessions(
  records: Records,
  principal: Principal,
  { agent, access, ...request }: Listing,
): Promise<Page<SessionSummary>> {
  const limit = request.limit ?? 100
  const items: SessionSummary[] = []
  let next = request.after
  do {
    const page = await records.list(principal, { limit: limit - items.length, ...(next !== undefined && { after: next }) })
    for (const head of page.items) {
      if (agent !== undefined && head.agent !== agent) continue
      if (!mayDo(access, principal, { action: 'read', agent: head.agent })) continue
      const found = await records.session(principal.tenant, head.id)
      if (found) items.push({ id: head.id, agent: head.agent, updatedAt: head.updatedAt, config: found.session.config })
    }
    next = page.next
  } while (items.length < limit && next !== undefined)
  return { items, next }
}
