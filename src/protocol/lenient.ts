/** Accepts what real clients send, though the specification says something else, or nothing. */
import { isRecord } from './json.ts'

type Fields = Readonly<Record<string, unknown>>

const IN_SESSION = ['agent', 'token', 'chat', 'payment_token']

const isAbsent = (value: unknown) => value === undefined || value === null

/**
 * Root fields that are in the wrong place, with the path of each: the portal's `session.create` has agent and token inside `session`, and
 * older clients send `conversation_id` for `chat_id`.
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

/** Moves misplaced fields to the root, and adds an id. An empty id counts as missing, because ids identify repeats. */
export function complete(event: Fields, found: ReturnType<typeof misplaced>, newId: () => string): Fields {
  const named = !isAbsent(event.event_id) && event.event_id !== ''
  if (named && !found) return event
  const completed: Record<string, unknown> = { ...event }
  if (!named) completed.event_id = newId()
  for (const name in found) completed[name] = isRecord(event.session) ? event.session[name] : event.conversation_id
  return completed
}

/** Extension slots, in which null has the meaning of their owner. */
const SLOTS = new Set(['extensions', 'metadata', 'context', 'parameters', 'schema', 'data', 'proof', 'ap2_credential', 'offer', 'answer'])

/**
 * Removes fields that are null, and keeps slots by reference: the reference client in Python writes None for absent fields. `fromEntries`
 * treats `__proto__` as a plain key.
 */
export function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls)
  if (!isRecord(value)) return value
  const fields = Object.entries(value).filter(([, field]) => field !== null)
  return Object.fromEntries(fields.map(([name, field]) => [name, SLOTS.has(name) ? field : withoutNulls(field)]))
}
