import type { Capabilities } from '../../protocol/capabilities.ts'
import { UampError } from '../../protocol/errors.ts'
import type { ServerEvent } from '../../protocol/events.ts'
import { toldCapabilities } from '../basics/shown-price.ts'
import { withHops } from '../basics/hops.ts'
import type { Holding } from './budget.ts'
import type { Principal } from '../ports/access.ts'
import type { AgentPort } from '../ports/agent.ts'
import type { Sender, SessionInit } from '../ports/session.ts'
import type { Trace } from '../ports/trace.ts'
import type { TurnStore } from '../ports/turn-store.ts'
import { SessionSecrets } from '../secrets/session-secrets.ts'
import { Stay, type SessionHost, type SessionParts, type SessionState } from './session-parts.ts'

type FactsHost = Pick<SessionHost, 'turnstile' | 'newId' | 'state' | 'secrets' | 'http' | 'payments' | 'now' | 'monotonic'>

/** What stays the same in a session from its beginning to its end. */
export class SessionFacts {
  readonly id: string
  /** The id that its events carry. */
  readonly shownId: string
  readonly transport: string
  readonly agent: string
  owner: Principal
  readonly chat: string | undefined
  readonly duplex: boolean
  readonly onDetach: SessionInit['onDetach']
  readonly createdAt: number
  readonly opening: SessionState['opening']
  readonly stored: boolean
  readonly held: Holding
  readonly turnstile: SessionHost['turnstile']
  readonly newId: () => string
  readonly stay: Stay
  readonly #host: FactsHost
  #store: TurnStore | undefined
  #secrets: SessionSecrets | undefined

  constructor(host: FactsHost, state: SessionState, { journal, held }: SessionParts) {
    this.id = state.id
    this.shownId = state.shownId ?? state.id
    this.transport = state.transport
    this.agent = state.agent
    this.owner = state.owner
    this.chat = state.chat
    this.duplex = state.duplex
    this.onDetach = state.onDetach
    this.createdAt = state.createdAt
    this.opening = state.opening
    this.stored = journal !== undefined
    this.held = held
    this.turnstile = host.turnstile
    this.newId = host.newId
    this.stay = new Stay(host)
    this.#host = host
  }

  get payments(): SessionHost['payments'] {
    return this.#host.payments
  }

  get now(): () => number {
    return this.#host.now
  }

  /** Made when an agent first calls somebody, or fails. */
  get secrets(): SessionSecrets {
    return (this.#secrets ??= new SessionSecrets(this.#host))
  }

  /** On a socket, only the first message may say how often the conversation was passed on. */
  traceOf({ trace }: Sender): Trace | undefined {
    const opening = this.opening?.trace
    return withHops(trace ?? opening, opening?.hops)
  }

  /** Made when an agent first remembers something. */
  get store(): TurnStore {
    return (this.#store ??= this.#host.state.of(this))
  }
}

/** The answer to a ping, which is not in the log. */
export function pong({ newId, shownId }: SessionFacts, now: number): ServerEvent {
  return { type: 'pong', event_id: newId(), timestamp: now, session_id: shownId }
}

/** The capabilities of one model of an agent. Throws `not_found` if the agent has no such model. */
export async function modelCapabilities(name: string, agent: AgentPort | undefined, model: string): Promise<Capabilities> {
  const isItself = model === agent?.capabilities.id
  const capabilities = isItself ? agent?.capabilities : await agent?.capabilitiesOf?.(model)
  if (!capabilities) throw new UampError('not_found', `"${name}" has no model "${model}"`, { details: { model } })
  return agent ? toldCapabilities(agent, capabilities) : capabilities
}
