/** What clients in the field send where the specification says something else, or nothing. */
import { isRecord } from './json.ts'

type Fields = Readonly<Record<string, unknown>>

const IN_SESSION = ['agent', 'token', 'chat', 'payment_token']

const isAbsent = (value: unknown) => value === undefined || value === null

/**
 * Fields of the root that stand elsewhere, and the path at which each was found: the portal's `session.create` has agent and
 * token inside `session`, and older clients say `conversation_id` for `chat_id`.
 */
export function misplaced(event: Fields): Readonly<Record<string, string>> | undefined {
  switch (event.type) {
    case 'session.create': {
      const { session } = event
      if (!isRecord(session)) return undefined
      const found = IN_SESSION.filter((name) => isAbsent(event[name]) && !isAbsent(session[name]))
      return found.length === 0 ? undefined : Object.fromEntries(found.map((name) => [name, `session.${name}`]))
    }
    case 'input.typing':
    case 'message.read':
      return isAbsent(event.chat_id) && !isAbsent(event.conversation_id) ? { chat_id: 'conversation_id' } : undefined
    default:
      return undefined
  }
}

/** The event with its misplaced fields at the root and with an id. An empty id is none: ids are compared to tell repeats. */
export function complete(event: Fields, found: ReturnType<typeof misplaced>, newId: () => string): Fields {
  const named = !isAbsent(event.event_id) && event.event_id !== ''
  if (named && !found) return event
  const completed: Record<string, unknown> = { ...event }
  if (!named) completed.event_id = newId()
  for (const name in found) completed[name] = isRecord(event.session) ? event.session[name] : event.conversation_id
  return completed
}

/** Extension slots, whose nulls mean what their owners say. */
const SLOTS = new Set(['extensions', 'metadata', 'context', 'parameters', 'schema', 'data', 'proof', 'ap2_credential', 'offer', 'answer'])

/**
 * The value without fields that are null, slots kept by reference: the reference client in Python writes None for what it
 * leaves out. `fromEntries` takes a key `__proto__` for what it is: a key.
 */
export function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls)
  if (!isRecord(value)) return value
  const fields = Object.entries(value).filter(([, field]) => field !== null)
  return Object.fromEntries(fields.map(([name, field]) => [name, SLOTS.has(name) ? field : withoutNulls(field)]))
}
