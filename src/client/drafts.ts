import type { ClientEvent, EventOf, ServerEvent } from '../protocol/events.ts'

type Unstamped<E> = E extends { readonly type: infer T }
  ? { readonly type: T; readonly event_id?: string } & Omit<E, 'type' | 'event_id' | 'session_id'>
  : never

/**
 * A client event without the ids that the session adds. The client itself opens sessions and sends pings.
 */
export type ClientDraft = Unstamped<Exclude<ClientEvent, { type: 'session.create' | 'ping' }>>

/** A part of a message. */
export type Input = Unstamped<EventOf<'input.text' | 'input.audio' | 'input.image' | 'input.video' | 'input.file'>>

type OfResponse<E> = E extends unknown ? ('response_id' extends keyof E ? E : never) : never

/** An event of a response. */
export type ResponseEvent = OfResponse<ServerEvent>
