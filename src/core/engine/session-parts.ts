import type { ClientEvent } from '../../protocol/events.ts'
import type { Message } from '../../protocol/message.ts'
import type { Holding } from './budget.ts'
import type { Journal } from '../durable/journal.ts'
import type { Payment } from '../../protocol/payment.ts'
import type { Clocks } from '../basics/clocks.ts'
import type { CoreLimits } from '../basics/limits.ts'
import type { Log as EventLog } from '../log/log.ts'
import type { Principal } from '../ports/access.ts'
import type { AgentPort } from '../ports/agent.ts'
import type { HttpClient } from '../ports/http.ts'
import type { Redaction } from '../ports/redaction.ts'
import type { InputEvent, Session } from '../ports/session.ts'
import type { Logger, Meter } from '../ports/transport.ts'
import type { SessionRecord, TurnRecord } from '../durable/records.ts'
import type { RunStart } from './run.ts'
import type { Turnstile } from './turnstile.ts'

/** What a session is made of, new or found again in the store. */
export interface SessionState extends SessionRecord {
  readonly head: string | null
  readonly messages: readonly Message[]
  readonly pending: readonly InputEvent[]
  /** What a request said that opened it. */
  readonly input?: readonly Message[] | undefined
  readonly waiting: { readonly record: TurnRecord; readonly start: RunStart } | undefined
  /** What else that request brought; `silent`: nobody sees its responses before they end, not even in the store. */
  readonly opening?: { readonly payment: Payment | undefined; readonly silent: boolean } | undefined
}

/** What the gateway makes for one session. */
export interface SessionParts {
  readonly log: (onReaders: () => void) => EventLog
  /** Undefined: the session is not stored. */
  readonly journal: Journal | undefined
  readonly held: Holding
}

/** What the gateway lends its sessions. */
export interface SessionHost extends Clocks {
  readonly limits: CoreLimits
  readonly newId: () => string
  readonly turnstile: Turnstile
  readonly http: HttpClient
  readonly log: Logger
  readonly secrets: Redaction
  readonly meter: Meter | undefined
  findAgent(name: string): AgentPort | undefined
  /** The agent, for a new response. Throws when none may begin. */
  admit(agent: string): AgentPort
  ended(session: Session): void
  /** Nobody needs it in memory any more. */
  letGo(session: Session): Promise<void>
  /** One more turn of this principal waits; `abandon` gives it up. Returns what is called when it waits no longer. */
  parked(owner: Principal, abandon: () => void): () => void
}

/** Where the store has a session: its log's last position, the number its events go on from, its inputs, its newest turn. */
export interface StoredAt {
  readonly position: number
  readonly head: number
  readonly inputs: number
  /** How many of them the turns have used up, and when the last turn began. */
  readonly consumed: number
  readonly updatedAt: number
  /** Those that pay with something, and are not used yet. */
  readonly unused: readonly ClientEvent[]
  readonly turn: string | null
  /** What it is stands in a record of its own. */
  readonly apart: boolean
}
