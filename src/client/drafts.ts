import type { ClientEvent, EventOf, ServerEvent } from '../protocol/events.ts'

type Unstamped<E> = E extends { readonly type: infer T }
  ? { readonly type: T; readonly event_id?: string } & Omit<E, 'type' | 'event_id' | 'session_id'>
  : never

/**
 * A client event as one writes it: the session adds its own id, and an `event_id` where there is none. Sessions are opened by
 * the client, and pings, which nobody acknowledges, are its business too.
 */
export type ClientDraft = Unstamped<Exclude<ClientEvent, { type: 'session.create' | 'ping' }>>

/** What a message may consist of. */
export type Input = Unstamped<EventOf<'input.text' | 'input.audio' | 'input.image' | 'input.video' | 'input.file'>>

type OfResponse<E> = E extends unknown ? ('response_id' extends keyof E ? E : never) : never

/** The events that belong to a response. */
export type ResponseEvent = OfResponse<ServerEvent>

export function isResponseEvent(event: ServerEvent): event is ResponseEvent {
  return 'response_id' in event && event.response_id !== undefined
}
