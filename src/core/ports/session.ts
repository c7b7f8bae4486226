import type { Capabilities } from '../../protocol/capabilities.ts'
import type { ContentItem } from '../../protocol/content.ts'
import type { ClientEvent, EventOf, ServerEvent } from '../../protocol/events.ts'
import type { Json, Slot } from '../../protocol/json.ts'
import type { Message } from '../../protocol/message.ts'
import type { Payment } from '../../protocol/payment.ts'
import type { SessionConfig } from '../../protocol/session-config.ts'
import type { Usage } from '../../protocol/usage.ts'
import type { Principal } from './access.ts'
import type { Questions } from './agent.ts'
import type { RecoverKeeper, TurnKeeper } from './keeper.ts'
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
  /** Each event of the log that is of one of these types. */
  pick(types: ReadonlySet<string>, visit: (event: ServerEvent) => void): void
  /** Each event in order, text deltas as their bare text: for codecs, which make a text of their own from it. */
  visit(visitor: Visitor): void
}

export interface Visitor {
  text(text: string, seq: number | undefined): void
  event(event: ServerEvent, seq: number | undefined): void
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

export type InputEvent = EventOf<'input.text' | 'input.audio' | 'input.image' | 'input.video' | 'input.file'>

/** One conversation in progress: client events in by `send`, server events out through any number of readers of its log. */
export interface Session {
  readonly id: string
  readonly agent: string
  readonly owner: Principal
  readonly createdAt: number
  /** Whether questions are answered while the response goes on; else they end it. */
  readonly duplex: boolean
  readonly config: SessionConfig
  /** What the client said it can do. */
  readonly client: Capabilities | undefined
  /** The `seq` of the newest event. */
  readonly lastSeq: number
  /** The newest response, also while it runs; until there is one, that which the session goes on from. */
  readonly lastResponse: string | null
  /** One-way only: the response that ended with questions, and those that have no answer yet. */
  readonly waiting: Waiting | undefined
  /** The questions that have no answer yet, also of a response that runs. */
  readonly asking: Waiting['questions']
  /**
   * Takes effect at once, in the order of the calls; resolves when it is durable, if the session is stored. An `event_id`
   * seen before is accepted again without effect. Rejects with the reason when the event is refused.
   */
  send(event: ClientEvent): Promise<void>
  /** What is said and the response to it, all or nothing: when the response is refused, nothing was said. Else as `send`. */
  say(inputs: readonly InputEvent[], create: EventOf<'response.create'>, options?: ResponseOptions): Promise<void>
  read(options?: ReadOptions): Reader
  /** The response that runs goes on to its end without readers, whatever their leaving means in this session. */
  finish(): void
  end(reason?: string): Promise<void>
  /** Its request is over: nothing of it is kept in memory but what waits for an answer. One that is not stored ends. */
  release(): Promise<void>
}

/** A name that a client chose: unique within tenant, principal and protocol. */
export interface Alias {
  readonly protocol: string
  readonly id: string
}

/** What a protocol wants of one response. */
export interface ResponseOptions {
  /** A name by which `gateway.response` finds it. Of several with one name, the newest is found. */
  readonly alias?: Alias
  /** Stored with it, for the protocol that asked. */
  readonly note?: Json
  readonly keeper?: TurnKeeper
}

export interface Waiting {
  readonly response: string
  readonly questions: readonly {
    readonly id: string
    readonly type: keyof Questions
    /** What a question for approval has beside the words. */
    readonly extensions?: Readonly<Slot> | undefined
  }[]
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
  /**
   * What the last reader's leaving means while a response runs: it stops, it goes on for the resume window, or it goes on to its end
   * without readers. Who comes back to one of the last kind can answer all of its questions.
   */
  readonly onDetach: 'cancel' | 'continue' | 'finish'
  /** threadId, contextId, chat. */
  readonly alias?: Alias
  /** The turn to continue from: `previous_response_id`, `parentRunId`. Turns are immutable, so continuing from an old one forks. */
  readonly parent?: string
  /** What the first response is asked, where that is more than input events can say: calls, results, thoughts. */
  readonly input?: readonly Message[]
  /** Nobody sees its first response before that has ended: until then it need not be in the store. One that is not stored has `Turn.silent`. */
  readonly silent?: boolean
  /** Earlier messages that a stateless protocol sends again each time. */
  readonly history?: readonly Message[]
  readonly client?: Capabilities | undefined
  /** What the client pays with from the start: the answer to the first `payment.required`. */
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
  /** The first response of the run it belongs to: questions and answers divide a run into several. */
  readonly run: string
  readonly session: string
  readonly agent: string
  /** The response it goes on from. */
  readonly parent: string | null
  readonly input: readonly Message[]
  /** The input is the whole conversation: what came before does not count. */
  readonly whole: boolean
  /** What it ended with for the client to answer. */
  readonly questions: Waiting['questions']
  /** The answers it goes on with. */
  readonly given: readonly Questions[keyof Questions][]
  /** Empty while it is open. */
  readonly output: readonly ContentItem[]
  readonly status: 'open' | 'waiting' | 'completed' | 'cancelled' | 'failed'
  readonly error: EventOf<'response.error'>['error'] | undefined
  readonly usage: Usage | undefined
  readonly config: SessionConfig
  readonly createdAt: number
  readonly endedAt: number | undefined
  /** Its events are those of the session's log after this number, up to its end. */
  readonly after: number
  /** What the protocol that asked for it noted. */
  readonly note: Json | undefined
}

/** What a transport keeps in memory for a principal. It must be closed. */
export interface Hold {
  /** It is so much now. */
  set(bytes: number): void
  /** As `set`, but throws `overloaded`, and changes nothing, when there is no room for more. */
  grow(bytes: number): void
  close(): void
}

/** Every call takes the principal; what belongs to someone else is not found. */
export interface Gateway {
  /**
   * Throws `too_large` when an extension slot in what a client sent holds more than it may. A transport calls it where it parses.
   * `length`: of the text that it was, if that is known: a short one need not be looked through.
   */
  checkSlots(value: unknown, length?: number): void
  /**
   * Counts what a transport keeps for a principal beside its sessions, as a large answer on its way to a client, against what the
   * principal may hold in memory. Throws `overloaded` when there is no room for it.
   */
  hold(principal: Principal, bytes: number): Hold
  open(init: SessionInit): Promise<Session>
  /** Says how to go on with what a protocol keeps beside responses that a crash left open. Call it before the gateway starts. */
  recoverWith(keeper: string, recover: RecoverKeeper): void
  attach(id: string | Alias, principal: Principal): Promise<Session | undefined>
  list(principal: Principal, page: PageRequest & { readonly agent?: string }): Promise<Page<SessionSummary>>
  /** A response of a stored session, also while it runs. */
  response(id: string | Alias, principal: Principal): Promise<StoredResponse | undefined>
  /**
   * Deletes a response; one that runs is cancelled. What other responses go on from stays in their conversation, but is not found
   * any more. False when there is none.
   */
  forget(id: string, principal: Principal): Promise<boolean>
  /** Deletes a session with everything in it; what runs is cancelled. False when there is none. */
  remove(id: string, principal: Principal): Promise<boolean>
}
