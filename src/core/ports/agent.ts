import type { Capabilities, ClientProfile } from '../../protocol/capabilities.ts'
import type { Draft, EventOf } from '../../protocol/events.ts'
import type { Slot } from '../../protocol/json.ts'
import type { Message } from '../../protocol/message.ts'
import type { SessionConfig } from '../../protocol/session-config.ts'
import type { Principal } from './access.ts'
import type { HttpClient } from './http.ts'
import type { Identity } from './identity.ts'
import type { ModelTable } from './models.ts'
import type { AgentPrice, Charged, ChargeRequest, HandedOn, HandOnRequest } from './payments.ts'
import type { Tool } from './skill.ts'
import type { Trace } from './trace.ts'
import type { Transport } from './transport.ts'
import type { TurnStore } from './turn-store.ts'

/**
 * What a session runs: one async generator. The session pulls it, stamps what it yields, and aborts `turn.signal` to
 * cancel it. `defineAgent` makes one from a generator, the `Agent` class from skills; remote agents implement it too.
 */
export interface AgentPort {
  readonly name: string
  readonly description?: string
  readonly capabilities: Capabilities
  /** What it can do with another of its models; undefined if it has no model of that name. */
  capabilitiesOf?(model: string): Promise<Capabilities | undefined>
  /** For cards and catalogues. Default: one for each tool that its capabilities name. */
  readonly abilities?: readonly Ability[]
  /** The agent's tools, for clients that call one directly. */
  readonly tools?: readonly Tool[]
  /** Keys and tokens that the agent sends to others: they are kept out of errors and logs. */
  readonly secrets?: readonly string[]
  /** A server calls it before it offers the agent. Throws if the agent cannot answer at all, because a key is missing. */
  prepare?(server: ServerFacts): void
  run(turn: Turn): AsyncIterable<Said>
  /** What a response costs. Default: nothing. */
  readonly price?: AgentPrice | undefined
  /** The protocols that it is offered through, by the names of their transports. Default: all. Its own routes are not among them. */
  readonly protocols?: readonly string[]
  /** Routes of its own, mounted before the built-in ones. Each transport is mounted once, when it is first seen. */
  readonly transports?: readonly Transport[]
  /** The names that `Turn.handoff` may have. Default: none. */
  readonly handoffs?: readonly string[]
  /** Set if a client of this server hosts the agent: whether it is there now, and in how many seconds to ask again if not. */
  readonly hosted?: { readonly online: boolean; readonly retryAfter: number } | undefined
  /** Calls `changed` when its capabilities or secrets have changed. Returns a function that ends this. */
  onChange?(changed: () => void): () => void
}

/** What a server tells its agents. */
export interface ServerFacts {
  /** Prices and limits of models that are newer than those that an agent was built with. */
  readonly models?: ModelTable | undefined
  /** Makes tokens in the name of the server, for agents that call other servers. */
  readonly identity?: Identity | undefined
}

/** What an agent yields: an event, or a piece of the answer's text. */
export type Said = Draft | string

/** Something that an agent is good at, as its card describes it. */
export interface Ability {
  readonly id: string
  readonly name: string
  readonly description: string
  readonly tags: readonly string[]
  /** Things that a user could say. */
  readonly examples?: readonly string[]
}

/** Questions an agent may put to the client in mid-turn, and the event that answers each. Open to declaration merging. */
export interface Questions {
  'tool.call': EventOf<'tool.result'>
  'payment.required': EventOf<'payment.submit'>
  'x.approval.request': EventOf<'x.approval.response'>
}

export type QuestionDraft<Q extends keyof Questions> = Q extends 'tool.call'
  ? { readonly name: string; readonly arguments: string; readonly call_id?: string }
  : Q extends 'x.approval.request'
    ? Omit<Draft<EventOf<'x.approval.request'>>, 'type' | 'approval_id'> & { readonly approval_id?: string }
    : Omit<Draft<Extract<EventOf<'payment.required'>, { type: Q }>>, 'type'>

export interface AskOptions {
  /** Names the answer, so that a turn that is run again finds it. Default: the kind of question and its number in the turn. */
  readonly key?: string
  readonly timeoutMs?: number
  /**
   * Ignore what is there already: a tool result that the conversation holds, because the agent has seen it and calls again; or a payment
   * that the client sent in advance.
   */
  readonly anew?: boolean
  /** The payment is for somebody else: it is handed to the agent as it is, and nothing is taken for it here. */
  readonly relay?: boolean
}

/** Methods of the client's own protocol, for agents that know it: the terminals of an editor. They end with the response. */
export interface ClientMethods {
  has(method: string): boolean
  /** Rejects with the client's own error. */
  call(method: string, params: unknown): Promise<unknown>
}

/** One run of the agent. It may span several responses: on a one-way transport each answer to `ask` opens the next one. */
export interface Turn {
  readonly id: string
  readonly sessionId: string
  /** The conversation so far, this turn's input last. */
  readonly messages: readonly Message[]
  /** In a turn that is run again: what it said and was answered before. `messages` does not hold it. */
  readonly said?: readonly Message[] | undefined
  /** False: a question ends the response, so let everything else that runs finish before you ask. */
  readonly duplex?: boolean | undefined
  /** True: nobody sees the response before its end, so an agent may fetch it in one piece. An agent may ignore this. */
  readonly silent?: boolean | undefined
  /** The part of the agent that shall take the turn, if the code that asks has chosen one of its `handoffs`. Clients cannot. */
  readonly handoff?: string | undefined
  /** The agents that handed this turn over, in order. */
  readonly through?: readonly string[] | undefined
  /** The session's configuration with the overrides of this `response.create`. */
  readonly config: SessionConfig
  /** `extensions` and `metadata` of the `response.create` itself. Those of the inputs, and their `context`, are in `messages`. */
  readonly asked?: { readonly extensions?: Slot | undefined; readonly metadata?: Slot | undefined } | undefined
  /** The transport that the client speaks: `events`, `completions` … */
  readonly transport?: string | undefined
  /** The chat that the client opened the session for (UAMP events §5.1). */
  readonly chat?: string | undefined
  readonly principal: Principal
  /** What the client said it can do. */
  readonly client: ClientProfile | undefined
  /** What the client does for this turn outside of its events. It is not stored, so a turn that is run again may have none. */
  readonly methods?: ClientMethods | undefined
  /** Aborted by a cancel, a time-out or the end of the session. Pass it to everything you wait for. */
  readonly signal: AbortSignal
  /** For calls to the outside. It reuses connections, and an abort closes them. */
  readonly http: HttpClient
  /** What the agent remembers between turns: of this session, of whoever is asking, and of the agent itself. */
  readonly store: TurnStore
  /** The request that the turn answers. Put its `fields` into log lines. Undefined outside a server. */
  readonly trace?: Trace | undefined
  /** Removes the server's secrets from a text. Use it on what others said before you log it or put it into an error. */
  readonly redact?: ((text: string) => string) | undefined
  /**
   * Emits the question and waits for its answer. On a one-way transport the response ends in that protocol's idiom, and the
   * generator is parked. If it cannot be parked (stateless, or after a restart), the turn is run again, and `ask` returns the answer
   * stored under `key`. So code before an `ask` may run twice.
   */
  ask<Q extends keyof Questions>(type: Q, question: QuestionDraft<Q>, options?: AskOptions): Promise<Questions[Q]>
  /**
   * Charges whoever asks. What they have paid before is used first; if it is not enough, they are asked as by `ask`. Rejects with
   * `payment_required` if nobody pays. The money moves when the response ends, and not if it fails.
   */
  charge(request: ChargeRequest): Promise<Charged>
  /**
   * Splits money off what whoever asks pays with, so that this agent can pay another one in their name. Rejects with `payment_required`
   * if there is not enough, or if the money may not be handed on so often. Give back the rest when the other agent is done.
   */
  handOn(request: HandOnRequest): Promise<HandedOn>
}
