import type { Principal } from '../ports/access.ts'
import type { SessionSummary } from '../ports/session.ts'
import type { Page, PageRequest } from '../ports/store.ts'
import type { Records } from '../durable/records.ts'

/** Lists the principal's sessions that have not ended, newest first; with `agent`, only those of that agent. */
export async function listSessions(
  records: Records,
  principal: Principal,
  { agent, ...request }: PageRequest & { readonly agent?: string },
): Promise<Page<SessionSummary>> {
  const limit = request.limit ?? 100
  const items: SessionSummary[] = []
  let next = request.after
  do {
    const page = await records.list(principal, { limit: limit - items.length, ...(next !== undefined && { after: next }) })
    for (const head of page.items) {
      if (agent !== undefined && head.agent !== agent) continue
      const found = await records.session(principal.tenant, head.id)
      if (found) items.push({ id: head.id, agent: head.agent, updatedAt: head.updatedAt, config: found.session.config })
    }
    next = page.next
  } while (items.length < limit && next !== undefined)
  return { items, next }
}
