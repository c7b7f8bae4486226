import { withoutOwnTools } from '../../core/edge/asked.ts'
import type { Trace } from '../../core/ports/trace.ts'
import type { Action, Principal } from '../../core/ports/access.ts'
import type { Session } from '../../core/ports/session.ts'
import type { Host, Socket } from '../../core/ports/transport.ts'
import type { ToolDefinition } from '../../protocol/tools.ts'
import type { Media } from './media/index.ts'
import type { Replays } from './media/replays.ts'
import type { OmniaLimits, OmniaOptions } from './options.ts'
import type { Positions } from './positions.ts'
import type { Places } from './tool-calls.ts'

/** What all connections share. */
export interface Shared {
  readonly host: Host
  readonly options: OmniaOptions
  readonly limits: OmniaLimits
  readonly positions: Positions
  readonly places: Places
  /** Undefined: uploads are off. */
  readonly media: Media | undefined
  readonly replays: Replays | undefined
}

/** What one connection has. */
export interface Link extends Shared {
  readonly socket: Socket
  readonly principal: Principal
  readonly agent: string
  readonly trace: Trace
  /** The address of this server, as the client knows it. */
  readonly url: string
  /** The client takes media as binary frames. */
  readonly binary: boolean
}

/** The tools that every client has, without those whose names the agent has taken. */
export function offeredTools({ host, agent, options: { clientTools = [] } }: Link): ToolDefinition[] {
  return withoutOwnTools(host.agents.get(agent), clientTools)
}

/** A session by its id, or by the id of an expired session that it replaces. */
export async function findSession({ gateway }: Host, id: string, { principal, action = 'call' }: Finding): Promise<Session | undefined> {
  return (await gateway.attach(id, principal, action)) ?? (await gateway.attach({ protocol: 'omnia', id }, principal, action))
}

interface Finding {
  readonly principal: Principal
  /** What the session is wanted for. */
  readonly action?: Action
}
