import { UampError } from '../../protocol/errors.ts'
import type { ClientEvent } from '../../protocol/events.ts'
import type { Message } from '../../protocol/message.ts'
import type { Holding } from './budget.ts'
import type { AgentState } from '../durable/agent-state.ts'
import type { Journal } from '../durable/journal.ts'
import type { Payment } from '../../protocol/payment.ts'
import type { Clocks, Turnstile } from '../basics/time.ts'
import type { CoreLimits } from '../basics/limits.ts'
import type { Log as EventLog } from '../log/log.ts'
import type { Principal } from '../ports/access.ts'
import type { AgentPort } from '../ports/agent.ts'
import type { HttpClient } from '../ports/http.ts'
import type { Payments } from '../ports/payments.ts'
import type { Redaction } from '../ports/redaction.ts'
import type { InputEvent, PaysAnew, Session, SessionInit } from '../ports/session.ts'
import type { ResponseSigner } from '../ports/signing.ts'
import type { Trace } from '../ports/trace.ts'
import type { Logger, Meter } from '../ports/transport.ts'
import type { SessionRecord, TurnRecord } from '../durable/records.ts'
import type { RunStart } from './run.ts'
import type { Answer } from './questions.ts'

/** How many client events a session remembers. */
const REMEMBERED = 256
/** A caller that found a session is expected to read it, to say something in it or to leave it within this time. */
const USE_MS = 10_000

const DONE = Promise.resolve()

/** The state that a session starts from: new, or read from the store. */
export interface SessionState extends SessionRecord {
  readonly head: string | null
  readonly messages: readonly Message[]
  readonly pending: readonly InputEvent[]
  /** The messages of the request that opened the session. */
  readonly input?: readonly Message[] | undefined
  readonly shownId?: string | undefined
  readonly waiting: { readonly record: TurnRecord; readonly start: RunStart } | undefined
  /** What else that request brought. `silent`: nobody sees a response before its end, not even in the store. */
  readonly opening?:
    | {
        readonly payment: Payment | undefined
        readonly silent: boolean
        readonly handoff?: string | undefined
        readonly paidThere?: boolean | undefined
        readonly paysAnew?: PaysAnew | undefined
        readonly trace?: Trace | undefined
      }
    | undefined
}

/** The parts that the gateway makes for each session. */
export interface SessionParts {
  readonly log: (onReaders: () => void) => EventLog
  /** Undefined: the session is not stored. */
  readonly journal: Journal | undefined
  readonly held: Holding
}

/** What sessions use of their gateway. */
export interface SessionHost extends Clocks {
  readonly limits: CoreLimits
  readonly newId: () => string
  readonly turnstile: Turnstile
  readonly http: HttpClient
  readonly log: Logger
  readonly secrets: Redaction
  readonly meter: Meter | undefined
  readonly signer: ResponseSigner | undefined
  /** Undefined: nothing can be paid here. */
  readonly payments: Payments | undefined
  /** What agents remember. */
  readonly state: AgentState
  findAgent(name: string): AgentPort | undefined
  /** The agent for a new response. Throws if no response may begin. `trace`: the request that asks for it. */
  admit(agent: string, trace?: Trace): AgentPort
  ended(session: Session): void
  /** Takes the session out of memory, unless it is busy. */
  letGo(session: Session): Promise<void>
  /** Counts a parked turn of this principal; `abandon` gives it up. Call the returned function when the turn is no longer parked. */
  parked(owner: Principal, abandon: () => void): () => void
}

/** The state of a session that begins. */
export function openedState(init: SessionInit, begun: Pick<SessionState, 'id' | 'createdAt' | 'messages'>): SessionState {
  return {
    id: begun.id,
    transport: init.transport,
    agent: init.agent,
    owner: init.principal,
    config: init.config,
    duplex: init.duplex,
    onDetach: init.onDetach,
    createdAt: begun.createdAt,
    client: init.client,
    chat: init.announce?.chat,
    head: init.parent ?? null,
    messages: begun.messages,
    pending: [],
    shownId: init.persist ? undefined : init.shownId,
    waiting: undefined,
    opening: {
      payment: init.payment,
      silent: init.silent === true && !init.persist,
      handoff: init.handoff,
      trace: init.trace,
      paidThere: init.paidThere,
      ...(init.paysAnew && { paysAnew: { isHeard: init.silent !== true } }),
    },
    input: init.input,
  }
}

/** How far a session's data in the store reaches. */
export interface StoredAt {
  /** The last position of its log. */
  readonly position: number
  /** The number that its events continue from. */
  readonly head: number
  readonly inputs: number
  /** How many of the inputs the responses have used up. */
  readonly consumed: number
  /** When the last response began. */
  readonly updatedAt: number
  /** Inputs that carry a payment, and that no response has used yet. */
  readonly unused: readonly ClientEvent[]
  /** The newest response. */
  readonly turn: string | null
  /** The `SessionRecord` is a record of its own, not a part of the `HeadRecord`. */
  readonly apart: boolean
}

export function responseInProgress(response_id: string): UampError {
  return new UampError('response_in_progress', 'A response is in progress: wait for its end, or cancel it', { details: { response_id } })
}

export function notInProgress(id: string | undefined): UampError {
  return new UampError('not_found', id === undefined ? 'No response is in progress' : `Response "${id}" is not in progress`)
}

/** No question waits for this answer, or another reader has answered it. */
export function notAwaited(event: Answer): UampError {
  if (event.type === 'payment.submit') return new UampError('not_found', 'Nothing waits for a payment')
  const id = event.type === 'tool.result' ? event.call_id : event.approval_id
  return new UampError('not_found', `Nothing waits for an answer to "${id}"`, { details: { id } })
}

/** Stops a running response that nobody reads: at once, after the resume window, or never. */
export class Unread {
  readonly #windowMs: number
  readonly #stop: () => void
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(windowMs: number, stop: () => void) {
    this.#windowMs = windowMs
    this.#stop = stop
  }

  /** Call it whenever a response begins, or a reader comes or leaves. Undefined: no response runs, or somebody reads it. */
  check(onDetach: SessionInit['onDetach'] | undefined): void {
    this.clear()
    if (onDetach === undefined || onDetach === 'finish') return
    this.#timer = setTimeout(this.#stop, onDetach === 'cancel' ? 0 : this.#windowMs)
  }

  clear(): void {
    clearTimeout(this.#timer)
  }
}

/** Makes a session idempotent: an event that is sent again is accepted without effect. */
export class Seen {
  readonly #events = new Map<string, Promise<void>>()
  #length = 0

  /** Roughly the memory of the ids: a character may take two bytes. */
  get bytes(): number {
    return 2 * this.#length
  }

  /** A repeated event resolves with the first. A refused one may be sent again. */
  once(event: Pick<ClientEvent, 'type' | 'event_id'>, accept: () => Promise<void>): Promise<void> {
    // The type is part of the key, because hand-written clients reuse ids across types.
    const key = `${event.type} ${event.event_id}`
    const before = this.#events.get(key) ?? this.#events.get(event.event_id)
    if (before) return before
    const accepted = accept()
    this.#set(key, accepted)
    accepted.then(
      () => this.#events.has(key) && this.#events.set(key, DONE),
      () => this.#delete(key),
    )
    return accepted
  }

  /** Adds an event from before a restart, whose type is not known. */
  addAny(eventId: string): void {
    this.#set(eventId, DONE)
  }

  #set(key: string, accepted: Promise<void>): void {
    if (!this.#events.has(key)) this.#length += key.length
    this.#events.set(key, accepted)
    if (this.#events.size <= REMEMBERED) return
    const [oldest] = this.#events.keys()
    if (oldest !== undefined) this.#delete(oldest)
  }

  #delete(key: string): void {
    if (this.#events.delete(key)) this.#length -= key.length
  }
}

/**
 * How long a session stays in memory. Callers that have found it may not have read it yet, and it must stay for them: if the next
 * caller's came from the store again, two objects would write one log.
 */
export class Stay {
  readonly #clocks: Clocks
  #callers = 0
  #foundAt = 0
  #ending: Promise<void> | undefined
  /** The session leaves memory as soon as nobody needs it there. */
  isReleased = false
  /** Unloaded: the store has the session, and another object may act for it. */
  over: 'ended' | 'unloaded' | undefined

  constructor(clocks: Clocks) {
    this.#clocks = clocks
  }

  get isUsed(): boolean {
    return this.#callers > 0 && this.#clocks.monotonic() - this.#foundAt < USE_MS
  }

  /** Counts a caller that has found the session. */
  found(): void {
    this.#callers = this.isUsed ? this.#callers + 1 : 1
    this.#foundAt = this.#clocks.monotonic()
  }

  left(): void {
    if (this.#callers > 0) this.#callers--
  }

  release(): void {
    this.isReleased = true
    this.left()
  }

  /** Ends the session by `run`, once. Resolves when it has ended. */
  end(run: () => Promise<void>): Promise<void> {
    if (this.over === 'unloaded') return Promise.resolve()
    this.over = 'ended'
    return (this.#ending ??= run())
  }

  /** Throws `not_found` after the end, and `overloaded` for a caller that kept the session for too long without using it. */
  check(): void {
    if (this.over === 'ended') throw new UampError('not_found', 'This session has ended')
    if (this.over === 'unloaded')
      throw new UampError('overloaded', 'The session left memory before this came: send it again', { details: { retry_after: 1 } })
  }
}
