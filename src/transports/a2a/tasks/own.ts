import type { Host, KnownCall } from '../../../core/ports/transport.ts'
import { UampError } from '../../../protocol/errors.ts'
import type { Found } from './records.ts'
import { notFound, type Shared } from './shared.ts'

/** The agent that a call is for. */
export function agentOf({ agents }: Host, { agent }: KnownCall): string {
  if (agent !== undefined && agents.get(agent)) return agent
  throw new UampError('agent_offline', 'Say which agent: use the URL of its card', { details: { agents: agents.names() } })
}

/** A task of the caller and of the agent that the call is for. Others are not found: whether they exist is nobody's business. */
export async function findOwn(shared: Shared, call: KnownCall, id: string): Promise<Found | undefined> {
  const { records, lives, host } = shared
  if (!id.isWellFormed()) return undefined
  const agent = agentOf(host, call)
  const live = lives.get(records.keyOf(call.principal, id))
  // Whoever has a running task in hand does not write it: its version does not matter.
  const found = live ? { record: live.record, version: 0 } : await records.find(call.principal, id)
  // One that is about to begin is not there yet.
  if (found?.record.steps.length === 0) return undefined
  return found?.record.agent === agent ? found : undefined
}

export async function mustFindOwn(shared: Shared, call: KnownCall, id: string): Promise<Found> {
  const found = await findOwn(shared, call, id)
  if (!found) throw notFound(id)
  return found
}
