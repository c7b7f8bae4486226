import { UampError } from '../../protocol/errors.ts'
import type { Host, KnownCall } from '../ports/transport.ts'

/** The agent of `/`: the one that was configured, else the only one, else the demo. */
export function agentAtRoot(names: readonly string[], configured?: string): string | undefined {
  return configured ?? (names.length === 1 ? names[0] : names.find((name) => name === 'demo'))
}

/**
 * Which agent a request means whose protocol has a field for a model. At the root that field may name an agent; where it does
 * not, the agent of the path answers, so that a client with a model's name of its own works unchanged.
 */
export function chooseAgent(
  { agents }: Pick<Host, 'agents'>,
  call: Pick<KnownCall, 'agent' | 'root' | 'principal' | 'access'>,
  model?: string,
): string {
  const named = call.root && model !== undefined && agents.get(model) ? model : undefined
  const agent = named ?? call.agent
  if (agent === undefined || !agents.get(agent)) {
    throw new UampError(
      'agent_offline',
      model === undefined ? 'Say which agent: name it as "model"' : `There is no agent "${model}" here`,
      {
        details: { agents: agents.names(), param: 'model' },
      },
    )
  }
  if (named !== undefined && !call.access.authorize(call.principal, 'call', named)) {
    throw new UampError('forbidden', `This token may not call ${named}`)
  }
  return agent
}
