import type { Draft, EventOf } from '../../protocol/events.ts'
import type { Json } from '../../protocol/json.ts'
import type { Operation } from './store.ts'

/** A response as its keeper sees it. */
export interface KeptResponse {
  readonly id: string
  readonly session: string
  readonly agent: string
  readonly tenant: string
  readonly owner: string
  /** The response's events follow this `seq` in the session's log. */
  readonly after: number
  readonly createdAt: number
  /** The `note` of its `ResponseOptions`. */
  readonly note?: Json | undefined
}

/** The event that a response ends with. */
export type EndDraft = Draft<EventOf<'response.done' | 'response.error' | 'response.cancelled'>>

/**
 * Writes what a protocol stores with one response, such as a task. It gives operations for the transactions that open and close the
 * response, so a crash leaves both or neither. After a crash the gateway closes the response with a keeper from `recoverWith`.
 */
export interface TurnKeeper {
  /** The name that its protocol passes to `recoverWith`. */
  readonly name: string
  /** Called when the response opens. The function it returns is called when the opening is written; never, if the end comes first. */
  opened(turn: KeptResponse): () => readonly Operation[]
  /** Sees every event of the response except its end, before it is stored; of plain text deltas only the first. */
  see?(event: Draft): void
  /** Called before the end is stored. `isFirst`: the opening was not written, so these operations must hold everything. */
  closed(turn: KeptResponse, end: EndDraft, isFirst: boolean): readonly Operation[]
  /** Called when the end is stored, or with the `failure` to store it, just before readers see it. */
  settled?(failure?: unknown): void
}

/** Makes the keeper of a response that a crash left open. Undefined: there is nothing to keep any more. */
export type RecoverKeeper = (turn: KeptResponse) => Promise<TurnKeeper | undefined>
