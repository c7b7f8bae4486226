import type { AgentRegistry } from './agent-registry.ts'
import type { Access } from '../ports/access.ts'
import type { Clocks } from '../basics/time.ts'
import type { CoreLimits } from '../basics/limits.ts'
import type { HttpClient } from '../ports/http.ts'
import type { Keys } from '../ports/keys.ts'
import type { Payments } from '../ports/payments.ts'
import type { Redaction } from '../ports/redaction.ts'
import type { Gateway } from '../ports/session.ts'
import type { ResponseSigner } from '../ports/signing.ts'
import type { Store } from '../ports/store.ts'
import type { Logger, Meter } from '../ports/transport.ts'

export interface GatewayOptions extends Partial<Clocks> {
  readonly agents: AgentRegistry
  readonly store: Store
  /** Asked what a principal may do. Default: everything. */
  readonly access?: Pick<Access, 'authorize'> | undefined
  readonly limits?: Partial<CoreLimits>
  readonly log?: Logger
  readonly meter?: Meter
  /** How agents call the outside. Default: `fetch`. */
  readonly http?: HttpClient
  /** Keeps secrets out of errors. Default: knows none. */
  readonly secrets?: Redaction
  /** The key that seals clients' secrets in the store. Default: none are stored. */
  readonly keys?: Keys
  /** Where agents' money comes from. Default: nothing can be paid, and what a client sends as a payment is handed to the agent. */
  readonly payments?: Payments | undefined
  /** Signs answers. Default: none are signed. */
  readonly signer?: ResponseSigner | undefined
  readonly newId?: () => string
}

export interface AgentGateway extends Gateway {
  readonly openSessions: number
  readonly openResponses: number
  /** Roughly the bytes that sessions hold in memory. */
  readonly heldBytes: number
  /** Closes the responses that a crash left open. Call it before the first session opens. */
  start(): Promise<void>
  /** Refuses new work; interrupts the responses that still run after the grace time. */
  drain(graceMs: number): Promise<void>
  /** Takes unused sessions out of memory, and applies retention to the store. The gateway does this itself every `sweepMs`. */
  sweep(): Promise<void>
  /** Removes a session from the store. False: it is in use. */
  removeUnused(tenant: string, session: string): Promise<boolean>
  close(): Promise<void>
}
