import * as z from 'zod/mini'
import { RESPONSE_ENDS } from '../../core/reading/ends.ts'
import { UampError } from '../../protocol/errors.ts'
import { ServerEvent, type Draft, type EventOf } from '../../protocol/events.ts'
import { FIRST_EXPLAINED } from '../../protocol/explain.ts'
import { isRecord, parseJson } from '../../protocol/json.ts'

export type Question = EventOf<'tool.call'> | EventOf<'x.approval.request'> | EventOf<'payment.required'>

const KNOWN: ReadonlySet<string> = new Set(ServerEvent.def.options.map((schema) => schema.shape.type.def.values[0] as string))

/** One event of the other server, by its form; undefined for a type that is not known here (UAMP events §14.3 rule 4). */
export function readEvent(text: string): ServerEvent | undefined {
  const value = readJson(text)
  if (!isRecord(value) || typeof value['type'] !== 'string') throw wrong('something that is no event')
  if (isTextDelta(value)) return value
  if (!KNOWN.has(value['type'])) return undefined
  const { error } = z.safeParse(ServerEvent, value, FIRST_EXPLAINED)
  const issue = error?.issues[0]
  if (issue) throw wrong(`${value['type']}: "${issue.path.join('.')}" ${issue.message}`)
  // As it came: what a newer server adds goes on to the client.
  return value as unknown as ServerEvent
}

export function isEnd(event: ServerEvent | undefined): boolean {
  return event !== undefined && RESPONSE_ENDS.has(event.type)
}

export function isQuestion(event: ServerEvent): event is Question {
  return event.type === 'tool.call' || event.type === 'x.approval.request' || event.type === 'payment.required'
}

/** Without the stamps of the other session. */
export function toDraft(event: ServerEvent): Draft {
  if (event.type === 'response.delta') return { type: event.type, delta: event.delta }
  const {
    event_id: _e,
    timestamp: _t,
    session_id: _s,
    seq: _q,
    response_id: _r,
    ...draft
  } = event as ServerEvent & { response_id?: string; seq?: number }
  return draft as unknown as Draft
}

function isTextDelta(value: Record<string, unknown>): value is EventOf<'response.delta'> & Record<string, unknown> {
  const delta = value['delta']
  return value['type'] === 'response.delta' && isRecord(delta) && delta['type'] === 'text' && typeof delta['text'] === 'string'
}

function readJson(text: string): unknown {
  try {
    return parseJson(text)
  } catch {
    throw wrong('something that is not JSON')
  }
}

function wrong(what: string): UampError {
  return new UampError('provider_error', `The remote agent's server sent ${what}`)
}
