import type { Capabilities } from '../../protocol/capabilities.ts'
import type { ClientEvent, ServerEvent } from '../../protocol/events.ts'
import type { Message } from '../../protocol/message.ts'
import type { SessionConfig } from '../../protocol/session-config.ts'
import type { Principal } from './access.ts'
import type { Page, PageRequest } from './store.ts'

/** An event of the log. Both forms are made when first asked for, and once. */
export interface Logged {
  readonly type: ServerEvent['type']
  /** Its place in the log; undefined for an event that is only for those who listen now (a pong, an acknowledgement). */
  readonly seq: number | undefined
  readonly event: ServerEvent
  /** The event as JSON, shared by every native reader and the store. */
  readonly text: string
}

/** Events in order. */
export interface Batch extends Iterable<Logged> {
  /** Each event as JSON, without making objects of the frequent ones. */
  eachText(visit: (text: string, seq: number | undefined) => void): void
  /** Whether an event of the log among them is of one of these types. */
  has(types: ReadonlySet<string>): boolean
}

/** A cursor on the log. Each step yields everything between the cursor and the head, so its transport can write it in one piece. */
export interface Reader extends AsyncIterable<Batch> {
  /** False when events after `after` are no longer to be had: never a silent gap. */
  readonly recovered: boolean
  /** Changes which extension events this reader gets. */
  understand(extensions: readonly string[] | 'all'): void
  /** Queues an event for this reader alone: a pong, an acknowledgement, a refusal. Not in the log. */
  tell(event: ServerEvent): void
  /** Ends the iteration; also for a reader that was never iterated. */
  close(): void
}

export interface ReadOptions {
  /** The last `seq` that is already known. Default: the head, so only what is to come. */
  readonly after?: number
  readonly signal?: AbortSignal
  /** The extension events (`x.*`) this reader understands, and so the questions it can answer. Default: none. */
  readonly extensions?: readonly string[] | 'all'
}

/** One conversation in progress: client events in by `send`, server events out through any number of readers of its log. */
export interface Session {
  readonly id: string
  readonly agent: string
  readonly owner: Principal
  readonly createdAt: number
  readonly config: SessionConfig
  /** What the client said it can do. */
  readonly client: Capabilities | undefined
  /** The `seq` of the newest event. */
  readonly head: number
  /**
   * Takes effect at once, in the order of the calls; resolves when it is durable, if the session is stored. An `event_id`
   * seen before is accepted again without effect. Rejects with the reason when the event is refused.
   */
  send(event: ClientEvent): Promise<void>
  read(options?: ReadOptions): Reader
  end(reason?: string): Promise<void>
}

export interface SessionInit {
  /** The transport that opens it, for what is counted. */
  readonly transport: string
  readonly agent: string
  readonly principal: Principal
  readonly config: SessionConfig
  /** Whether the client can answer in mid-response: true for sockets, false for one request and its reply. */
  readonly duplex: boolean
  /** Whether log and turns go to the store. Completions without `store` and Realtime: no. */
  readonly persist: boolean
  /** What the last reader's leaving means while a response runs: one-request protocols cancel, the others go on for the resume window. */
  readonly onDetach: 'cancel' | 'continue'
  /** A client-chosen id (threadId, contextId, chat): unique within tenant, principal and protocol. */
  readonly alias?: { readonly protocol: string; readonly id: string }
  /** The turn to continue from: `previous_response_id`, `parentRunId`. Turns are immutable, so continuing from an old one forks. */
  readonly parent?: string
  /** Earlier messages that a stateless protocol sends again each time. */
  readonly history?: readonly Message[]
  readonly client?: Capabilities | undefined
  /** What `session.created` says beside the session itself. */
  readonly announce?: { readonly chat?: string; readonly extensions?: Readonly<Record<string, unknown>> }
}

export interface SessionSummary {
  readonly id: string
  readonly agent: string
  readonly updatedAt: number
}

/** Every call takes the principal; what belongs to someone else is not found. */
export interface Gateway {
  open(init: SessionInit): Promise<Session>
  attach(id: string | { readonly protocol: string; readonly id: string }, principal: Principal): Promise<Session | undefined>
  list(principal: Principal, page: PageRequest & { readonly agent?: string }): Promise<Page<SessionSummary>>
}
