import type { Draft, EventOf } from '../../protocol/events.ts'
import type { Json } from '../../protocol/json.ts'
import type { Operation } from './store.ts'

/** A response, as those who keep something beside it know it. */
export interface KeptResponse {
  readonly id: string
  readonly session: string
  readonly agent: string
  readonly tenant: string
  readonly owner: string
  /** Its events are those of the session's log after this number, up to its end. */
  readonly after: number
  readonly createdAt: number
  /** What the request noted. */
  readonly note?: Json | undefined
}

/** The event that a response ends with. */
export type EndDraft = Draft<EventOf<'response.done' | 'response.error' | 'response.cancelled'>>

/**
 * What a protocol keeps beside one response: a task, later a payment's lock. It gives operations for the transactions that open and
 * close the response, so a crash leaves both or neither. After a crash the gateway closes the response with one that
 * `recoverWith` made.
 */
export interface TurnKeeper {
  /** By which `recoverWith` finds its like after a crash. */
  readonly name: string
  /** Called when the response opens. What it gives back is called when that is written, if that is before the end is. */
  opened(turn: KeptResponse): () => readonly Operation[]
  /** Every event of the response except its end, as it is said and before it is stored; of plain text only the first piece. */
  see?(event: Draft): void
  /** Called before the end is stored. `isFirst`: nothing has been written yet, as nobody hears of the response before its end. */
  closed(turn: KeptResponse, end: EndDraft, isFirst: boolean): readonly Operation[]
  /** The end is stored, and readers are told of it next. `failure`: it could not be stored. */
  settled?(failure?: unknown): void
}

/** Makes the keeper of a response that a crash left open. Undefined: there is nothing to keep any more. */
export type RecoverKeeper = (turn: KeptResponse) => Promise<TurnKeeper | undefined>
