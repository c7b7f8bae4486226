/** What both ends of a connection that hosts agents say to each other beside the events of the specification. */
import { isRecord, uampIn, type Slot } from '../protocol/json.ts'

/** The version of these additions, which both ends announce under `extensions.uamp.connect`. */
export const CONNECT_VERSION = 1

/** A run of text deltas in one event, from the agent: `{ session_id, seq, texts }`. `seq` is that of the first. */
export const DELTAS = 'x.connect.deltas'
/** Asks the agent for the events of an answer after a `seq`: `{ session_id, after }`. */
export const RESUME = 'x.connect.resume'
/** Tells the agent how far an answer was taken: `{ session_id, seq }`. */
export const TAKEN = 'x.connect.taken'

/** How far an agent may be ahead of what was taken, in events and in characters. */
export const WINDOW_EVENTS = 8192
export const WINDOW_LENGTH = 1024 * 1024

/** The reason in `session.end` when another process hosts the agent from now on (UAMP events §5.3). */
export const TAKEOVER = 'daemon_takeover'

/** What the other end announces; undefined if it knows nothing of these additions. */
export function connectIn(extensions: Readonly<Slot> | null | undefined): Readonly<Record<string, unknown>> | undefined {
  const { connect } = uampIn(extensions)
  return isRecord(connect) && typeof connect['version'] === 'number' && connect['version'] >= 1 ? connect : undefined
}
