import { UampError } from '../../protocol/errors.ts'
import type { Host, KnownCall } from '../ports/transport.ts'

/** The agent of `/`: the configured one, else the only one, else the demo. */
export function agentAtRoot(names: readonly string[], configured?: string): string | undefined {
  return configured ?? (names.length === 1 ? names[0] : names.find((name) => name === 'demo'))
}

/**
 * The agent for a request of a protocol that has a `model` field. At the root that field may name an agent. If it does not, the
 * path's agent answers, so that clients which send a vendor's model name work unchanged.
 */
export function chooseAgent(
  { agents }: Pick<Host, 'agents'>,
  call: Pick<KnownCall, 'agent' | 'root' | 'principal' | 'access'>,
  model?: string,
): string {
  const named = call.root && model !== undefined && agents.get(model) ? model : undefined
  const agent = named ?? call.agent
  if (agent === undefined || !agents.get(agent)) {
    const message = model === undefined ? 'Say which agent: name it as "model"' : `There is no agent "${model}" here`
    throw new UampError('agent_offline', message, { details: { agents: agents.names(), param: 'model' } })
  }
  if (named !== undefined && !call.access.authorize(call.principal, 'call', named)) {
    throw new UampError('forbidden', `This token may not call ${named}`)
  }
  return agent
}
