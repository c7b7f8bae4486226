import type { AgentRegistry } from './agent-registry.ts'
import type { Clocks } from '../basics/clocks.ts'
import type { CoreLimits } from '../basics/limits.ts'
import type { HttpClient } from '../ports/http.ts'
import type { Keys } from '../ports/keys.ts'
import type { Redaction } from '../ports/redaction.ts'
import type { Gateway } from '../ports/session.ts'
import type { Store } from '../ports/store.ts'
import type { Logger, Meter } from '../ports/transport.ts'

export interface GatewayOptions extends Partial<Clocks> {
  readonly agents: AgentRegistry
  readonly store: Store
  readonly limits?: Partial<CoreLimits>
  readonly log?: Logger
  readonly meter?: Meter
  /** How agents call the outside. Default: `fetch`. */
  readonly http?: HttpClient
  /** What must not stand in errors. Default: nothing is known. */
  readonly secrets?: Redaction
  /** What secrets of clients are sealed with in the store. Default: none is stored. */
  readonly keys?: Keys
  readonly newId?: () => string
}

export interface AgentGateway extends Gateway {
  readonly openSessions: number
  readonly openResponses: number
  /** Roughly what sessions hold in memory. */
  readonly heldBytes: number
  /** Closes what a crash left open. Call it before the first session. */
  start(): Promise<void>
  /** No new work; running responses get the grace time, then are interrupted. */
  drain(graceMs: number): Promise<void>
  /** Lets go of sessions that nobody needs in memory, and removes what is to be kept no longer. It does so by itself every `sweepMs`. */
  sweep(): Promise<void>
  /** Takes a session out of memory. False: somebody uses it. */
  unload(tenant: string, session: string): Promise<boolean>
  close(): Promise<void>
}
