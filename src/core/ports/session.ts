import type { ClientProfile } from '../../protocol/capabilities.ts'
import type { ContentItem } from '../../protocol/content.ts'
import type { ClientEvent, EventOf, ServerEvent } from '../../protocol/events.ts'
import type { InputEvent } from '../../protocol/gather-input.ts'
import type { Json, Slot } from '../../protocol/json.ts'
import type { Message } from '../../protocol/message.ts'
import type { Payment } from '../../protocol/payment.ts'
import type { SessionConfig } from '../../protocol/session-config.ts'
import type { Usage } from '../../protocol/usage.ts'
import type { Action, Principal } from './access.ts'
import type { ClientMethods, Questions, Turn } from './agent.ts'
import type { RecoverKeeper, TurnKeeper } from './keeper.ts'
import type { Page, PageRequest } from './store.ts'
import type { Trace } from './trace.ts'
import type { TurnStore } from './turn-store.ts'

/** An event of the log. `event` and `text` are each made once, when first asked for. */
export interface Logged {
  readonly type: ServerEvent['type']
  /** The event's place in the log; undefined for one that the log does not keep (a pong, an acknowledgement). */
  readonly seq: number | undefined
  readonly event: ServerEvent
  /** The event as JSON, shared by every native reader and the store. */
  readonly text: string
}

/** Events in order. */
export interface Batch extends Iterable<Logged> {
  /** Visits each event as JSON; text deltas, the most frequent ones, are never made into objects. */
  eachText(visit: (text: string, seq: number | undefined) => void): void
  /** True if the batch holds an event of the log that has one of these types. */
  has(types: ReadonlySet<string>): boolean
  /** Visits each event of the log that has one of these types. */
  pick(types: ReadonlySet<string>, visit: (event: ServerEvent) => void): void
  /** Visits each event in order, text deltas as bare texts: for encoders, which write a frame of their own for each. */
  visit(visitor: Visitor): void
}

export interface Visitor {
  text(text: string, seq: number | undefined): void
  event(event: ServerEvent, seq: number | undefined): void
}

/** A cursor on the log. Each step yields everything between the cursor and the head, so that a transport can write it in one piece. */
export interface Reader extends AsyncIterable<Batch> {
  /** Passes each batch to `take`, one after the other, until the iteration ends. */
  each(take: (batch: Batch) => Promise<void>): Promise<void>
  /** False when some events after `after` are gone: the client must be told of the gap. */
  readonly recovered: boolean
  /** Changes which extension events this reader gets. */
  understand(extensions: readonly string[] | 'all'): void
  /** Queues an event for this reader alone, outside the log: a pong, an acknowledgement, a refusal. */
  tell(event: ServerEvent): void
  /** Ends the iteration. A reader that was never iterated must be closed, too. */
  close(): void
}

export interface ReadOptions {
  /** The last `seq` that the reader already has. Default: the head, so that it gets only new events. */
  readonly after?: number
  readonly signal?: AbortSignal
  /** The extension events (`x.*`) this reader understands, and so the questions it can answer. Default: none. */
  readonly extensions?: readonly string[] | 'all'
  /** The reader sees events of a stored session only once they are committed: no crash can take back what it was shown. */
  readonly committed?: boolean
}

export type { InputEvent }

/** One conversation in progress: client events in by `send`, server events out through any number of readers of its log. */
export interface Session {
  readonly id: string
  readonly agent: string
  /** By the credentials of the client that came last. */
  readonly owner: Principal
  readonly createdAt: number
  /** True: a client answers questions while the response runs. False: a question ends the response. */
  readonly duplex: boolean
  readonly config: SessionConfig
  /** The chat that the client opened it for. */
  readonly chat: string | undefined
  /** What the client said it can do. */
  readonly client: ClientProfile | undefined
  /** The `seq` of the newest event. */
  readonly lastSeq: number
  /** The newest response, even while it runs; before the first one, the response that the session continues from. */
  readonly lastResponse: string | null
  /** True while a response runs. */
  readonly responding: boolean
  /** One-way only: the response that ended with questions, and those of them that have no answer yet. */
  readonly waiting: Waiting | undefined
  /** The questions that have no answer yet, of a running response too. */
  readonly asking: Waiting['questions']
  /**
   * Takes effect at once, in the order of the calls. In a stored session it resolves when the event is durable. An `event_id`
   * seen before is accepted without effect. Rejects with the reason when the session refuses the event.
   */
  send(event: ClientEvent, by?: Sender): Promise<void>
  /** Sends inputs and `response.create`, all or nothing: if the response is refused, so are the inputs. Otherwise as `send`. */
  say(inputs: readonly InputEvent[], create: EventOf<'response.create'>, options?: ResponseOptions): Promise<void>
  read(options?: ReadOptions): Reader
  /** Lets the running response go on to its end without readers, whatever the session's `onDetach` says. */
  finish(): void
  end(reason?: string): Promise<void>
  /** Whoever opened or found the session no longer uses it. It stays in memory for the next one, unless it is large. */
  leave(): void
  /** As `leave`, but a stored session leaves memory once it neither runs nor waits for an answer, and any other session ends. */
  release(): Promise<void>
}

/** A name that a client chose: unique within tenant, principal and protocol. */
export interface Alias {
  readonly protocol: string
  readonly id: string
}

/** Who sends an event. */
export interface Sender {
  /** By the credentials of this very client. Default: the session's owner. */
  readonly principal?: Principal | undefined
  /** The request that it came with. Default: the one that opened the session. */
  readonly trace?: Trace | undefined
  /**
   * The hash of the messages as the client wrote them, for the signature. A protocol whose client sends messages in a form of its own
   * gives it if `gateway.signs` says so. Default: the hash of the messages that the session made of them.
   */
  readonly requestHash?: string | undefined
  /** What the client sent to pay for this response, whatever the agent asks for in it. */
  readonly payment?: Payment | undefined
  /** As that of the `SessionInit`, which knows only how the session began. */
  readonly paysAnew?: PaysAnew | undefined
}

/** How a client pays that is asked for it in the middle of a response: by the same request again. */
export interface PaysAnew {
  /** What the response says is heard before its end. */
  readonly isHeard: boolean
}

/** What a protocol asks of one response beside its content. */
export interface ResponseOptions extends Sender {
  /** A name by which `gateway.response` finds the response. If several share it, the newest is found. */
  readonly alias?: Alias
  /** Stored with the response, for the protocol's own use. */
  readonly note?: Json
  readonly keeper?: TurnKeeper
  /** What the client does for this response, as long as it is there. */
  readonly methods?: ClientMethods
}

export interface Waiting {
  readonly response: string
  readonly questions: readonly {
    readonly id: string
    readonly type: keyof Questions
    /** The `extensions` of an approval request. */
    readonly extensions?: Readonly<Slot> | undefined
  }[]
}

export interface SessionInit {
  /** The transport that opens the session: the meter counts by it. */
  readonly transport: string
  readonly agent: string
  readonly principal: Principal
  /** The request, or the connection, that opens it. */
  readonly trace?: Trace | undefined
  readonly config: SessionConfig
  /** True if the client can answer questions in mid-response (sockets); false for one request and its reply. */
  readonly duplex: boolean
  /** True if the log and the responses go to the store. False for Realtime, and for Completions without `store`. */
  readonly persist: boolean
  /**
   * What happens to a running response when its last reader leaves: it stops, it goes on for the resume window, or it goes on to its
   * end. In the last case a returning client can still answer all questions.
   */
  readonly onDetach: 'cancel' | 'continue' | 'finish'
  /** The id that its events carry, if the client chose it (UAMP events §10.2). Only for a session that is not stored. */
  readonly shownId?: string
  /** The protocol's name for the conversation: threadId, contextId, chat. */
  readonly alias?: Alias
  /** The response to continue from: `previous_response_id`, `parentRunId`. Ended responses never change, so an old one forks. */
  readonly parent?: string
  /** The input of the first response, where input events cannot express it: calls, results, thoughts. */
  readonly input?: readonly Message[]
  /** Nobody reads the first response before its end, so its opening may be stored with its end. Without a store it sets `Turn.silent`. */
  readonly silent?: boolean
  /** One of the agent's `handoffs`, which then takes the turns. Only for a session that is not stored. */
  readonly handoff?: string
  /** Earlier messages, which a stateless protocol sends with every request. */
  readonly history?: readonly Message[]
  readonly client?: ClientProfile | undefined
  /**
   * A client that is asked to pay in mid-response sends its whole request again, in a new session: it is asked for all that this costs,
   * and pays nothing for an answer of which it got nothing.
   */
  readonly paysAnew?: boolean
  /** Whoever opened the session takes the money for it: charges are asked for there, and nothing is verified here. */
  readonly paidThere?: boolean
  /** A payment that the client sent in advance: it answers the first `payment.required`. */
  readonly payment?: Payment
  /** What `session.created` says beside the session itself. */
  readonly announce?: { readonly chat?: string; readonly extensions?: Readonly<Record<string, unknown>> }
}

export interface SessionSummary {
  readonly id: string
  readonly agent: string
  readonly updatedAt: number
  readonly config: SessionConfig
}

/** One response as it is stored. */
export interface StoredResponse {
  readonly id: string
  /** The first response of its turn: questions and answers divide a turn into several responses. */
  readonly run: string
  readonly session: string
  readonly agent: string
  /** The response it continues from. */
  readonly parent: string | null
  readonly input: readonly Message[]
  /** The input is the whole conversation: earlier responses of the chain do not belong to it. */
  readonly whole: boolean
  /** The questions that it ended with. */
  readonly questions: Waiting['questions']
  /** The answers that opened it. */
  readonly given: readonly Questions[keyof Questions][]
  /** Empty while it is open. */
  readonly output: readonly ContentItem[]
  readonly status: 'open' | 'waiting' | 'completed' | 'cancelled' | 'failed'
  readonly error: EventOf<'response.error'>['error'] | undefined
  readonly usage: Usage | undefined
  readonly config: SessionConfig
  /** `extensions` and `metadata` of the `response.create` that asked for it. */
  readonly asked: Turn['asked']
  readonly createdAt: number
  readonly endedAt: number | undefined
  /** The response's events follow this `seq` in the session's log. */
  readonly after: number
  /** The `note` of its `ResponseOptions`. */
  readonly note: Json | undefined
}

/** Memory that a transport uses for a principal, counted until `close`. */
export interface Hold {
  /** Sets the new total. */
  set(bytes: number): void
  /** As `set`, but throws `overloaded` and changes nothing when there is no room. */
  grow(bytes: number): void
  close(): void
}

/**
 * Opens and finds sessions and responses. To a principal, those of others do not exist, and their own only as far as `Access` says that
 * they may use the agent.
 */
export interface Gateway {
  /**
   * Throws `too_large` when an extension slot in a client's message is too large. A transport calls it where it parses. `length` is
   * that of the message's text, if known: a short message needs no search.
   */
  checkSlots(value: unknown, length?: number): void
  /**
   * Counts memory that a transport uses beside sessions, such as a large answer on its way out, against the principal's bound.
   * Throws `overloaded` when there is no room.
   */
  hold(principal: Principal, bytes: number): Hold
  /** Throws `forbidden` if the principal may not do this. `open` asks for `call`, and what finds, lists or deletes asks by itself. */
  authorize(principal: Principal, action: Action, agent: string | undefined): void
  /** Whether a response is signed if its client asks so, or says nothing. */
  signs(asked: boolean | undefined): boolean
  open(init: SessionInit): Promise<Session>
  /** What an agent remembers, for a call outside any session. What it keeps of the session is gone after the call. */
  storeOf(agent: string, principal: Principal): TurnStore
  /** Registers how to make keepers of this name for responses that a crash left open. Call it before the gateway starts. */
  recoverWith(keeper: string, recover: RecoverKeeper): void
  /** `action`: what the session is found for, by default `call`. Found for a `call`, its owner is known by these credentials from then on. */
  attach(id: string | Alias, principal: Principal, action?: Action): Promise<Session | undefined>
  list(principal: Principal, page: PageRequest & { readonly agent?: string }): Promise<Page<SessionSummary>>
  /** Finds a response of a stored session, even while it runs. */
  response(id: string | Alias, principal: Principal): Promise<StoredResponse | undefined>
  /**
   * Deletes a response, and cancels it if it runs. If others continue from it, it stays in their conversation, but can no longer be
   * found. False when there is none.
   */
  forget(id: string, principal: Principal): Promise<boolean>
  /** Deletes a session with everything in it, and cancels its running response. False when there is none. */
  remove(id: string, principal: Principal): Promise<boolean>
}
