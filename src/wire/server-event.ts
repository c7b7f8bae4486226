import * as z from 'zod/mini'
import { UampError } from '../protocol/errors.ts'
import { SERVER_EVENTS, ServerEvent, type Draft, type EventOf } from '../protocol/events.ts'
import { FIRST_EXPLAINED } from '../protocol/explain.ts'
import { fieldsOf, isRecord, jsonIn } from '../protocol/json.ts'
import { inKnownWords } from '../protocol/lenient.ts'

/** An event of the other server, or its ping. */
export type Received = ServerEvent | { readonly type: 'ping' }

/**
 * One event of the other server. Undefined if its type or its values are not known here: a minor version may add some (UAMP events
 * §14.3), and they must not end a response. An end, and a failure, is always understood.
 */
export function readEvent(text: string): Received | undefined {
  return readValue(jsonIn(text))
}

/** The same of a value that is parsed already. */
export function readValue(value: unknown): Received | undefined {
  if (!isRecord(value) || typeof value['type'] !== 'string') throw wrong('something that is no event')
  if (isTextDelta(value)) return value
  if (value['type'] === 'ping') return { type: 'ping' }
  if (!SERVER_EVENTS.has(value['type'])) return undefined
  // Not the parsed copy: fields that a newer server adds go on to the client.
  if (fits(value)) return value
  const known = inKnownWords({ event_id: '', ...value })
  return [known, completed(fieldsOf(known))].find(fits)
}

function fits(value: unknown): value is ServerEvent {
  return z.safeParse(ServerEvent, value, FIRST_EXPLAINED).success
}

/** An event that ends something, with what it lacks: some servers leave out the body of a `response.done`. */
function completed(event: Readonly<Record<string, unknown>>): unknown {
  const { type, event_id = '', session_id, response_id = '', signature } = event
  const base = { type, event_id, ...(typeof session_id === 'string' && { session_id }), response_id }
  switch (type) {
    case 'response.done': {
      const { id = '', status, output, extensions } = fieldsOf(event['response'])
      const ended = status === 'cancelled' || status === 'failed' ? status : 'completed'
      const response = { id, status: ended, output: Array.isArray(output) ? output : [], ...(isRecord(extensions) && { extensions }) }
      const whole = { ...base, response, ...(typeof signature === 'string' && { signature }) }
      return fits(whole) ? whole : { ...base, response: { id: '', status: ended, output: [] } }
    }
    case 'response.cancelled':
      return base
    case 'response.error':
    case 'session.error': {
      const { code, message } = fieldsOf(event['error'])
      const said = typeof message === 'string' ? message : 'The agent failed'
      return { ...base, error: { code: typeof code === 'string' ? code : 'provider_error', message: said } }
    }
    case 'session.end':
      return base
    default:
      return undefined
  }
}

/** Without the stamps of the other session. */
export function toDraft(event: ServerEvent): Draft {
  if (event.type === 'response.delta') return { type: event.type, delta: event.delta }
  const stamped = event as ServerEvent & { response_id?: string; seq?: number }
  const { event_id: _e, timestamp: _t, session_id: _s, seq: _q, response_id: _r, ...draft } = stamped
  return draft as unknown as Draft
}

function isTextDelta(value: Record<string, unknown>): value is EventOf<'response.delta'> & Record<string, unknown> {
  const delta = value['delta']
  return value['type'] === 'response.delta' && isRecord(delta) && delta['type'] === 'text' && typeof delta['text'] === 'string'
}

function wrong(what: string): UampError {
  return new UampError('provider_error', `The remote agent's server sent ${what}`)
}
