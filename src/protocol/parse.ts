import * as z from 'zod/mini'
import { UampError } from './errors.ts'
import { ClientEvent } from './events.ts'
import { FIRST_EXPLAINED, FIRST_MISTAKE, kindOf } from './explain.ts'
import { isDeeperThan, isRecord, JsonBoundError, parseJson } from './json.ts'
import { inKnownWords } from './lenient.ts'
import { limits } from './limits.ts'

/**
 * What a client sent. A type that is not a client event is `unknown`, which is logged and never an error (UAMP events §14.3 rule 4). So
 * are `system.*` events, which no client may send (§11).
 */
export type ParsedEvent =
  | { readonly kind: 'event'; readonly event: ClientEvent }
  | { readonly kind: 'unknown'; readonly type: string; readonly event_id: string | undefined; readonly session_id: string | undefined }

type Fields = Readonly<Record<string, unknown>>

interface Issue {
  readonly path: string
  readonly message: string
}

const SCHEMAS = new Map(ClientEvent.def.options.map((schema) => [schema.shape.type.def.values[0] as string, schema]))
/** Root fields that some clients put into `session`. */
const IN_SESSION = ['agent', 'token', 'chat', 'payment_token']

/** Parses one client event from a text. Throws `invalid_request`, or `too_large` for a text with too many values. */
export function parseClientText(text: string, newId: () => string): ParsedEvent {
  let value: unknown
  try {
    value = parseJson(text, limits.depth)
  } catch (cause) {
    if (cause instanceof JsonBoundError) throw excessive(cause)
    throw refusal({}, 'Not JSON: send one event as a JSON object, such as {"type":"ping"}', {
      issues: [{ path: '', message: 'is not JSON' }],
      cause,
    })
  }
  return parseFlat(value, newId)
}

/** Parses one client event from a JSON value. Throws `invalid_request`. Does not change the value; keeps slots by reference. */
export function parseClientEvent(value: unknown, newId: () => string): ParsedEvent {
  if (isDeeperThan(value, limits.depth)) throw excessive(new JsonBoundError('depth', limits.depth))
  return parseFlat(value, newId)
}

function parseFlat(value: unknown, newId: () => string): ParsedEvent {
  if (!isRecord(value)) {
    const message = `must be an object, not ${kindOf(value)}`
    throw refusal({}, `An event ${message}: send one event a message, such as {"type":"ping"}`, { issues: [{ path: '', message }] })
  }
  const { type, event_id, session_id } = value
  if (typeof type !== 'string') {
    const message = `must be a string${type === undefined ? ', but is missing' : `, not ${kindOf(type)}`}`
    throw refusal(value, `"type" ${message}: name the event, such as "input.text"`, { issues: [{ path: 'type', message }] })
  }
  const schema = SCHEMAS.get(type)
  if (!schema) {
    const ids = { event_id: isId(event_id) ? event_id : undefined, session_id: isId(session_id) ? session_id : undefined }
    return { kind: 'unknown', type: type.slice(0, limits.idLength), ...ids }
  }

  const found = misplaced(value)
  const event = complete(value, found, newId)
  const result = validate(schema, event)
  if (result.success) return { kind: 'event', event: result.data }

  const issues = result.error.issues.map(({ path, message }) => ({ path: spell(path, found), message }))
  throw refusal(value, `${type}: "${issues[0]?.path}" ${issues[0]?.message}`, { issues })
}

function validate(schema: z.ZodMiniType<ClientEvent>, event: Fields) {
  // Not `z.safeParse`, which makes a context for each call: that would take longer than the rest.
  const { value, issues } = schema._zod.run({ value: event, issues: [] }, FIRST_MISTAKE) as z.core.ParsePayload<ClientEvent>
  if (issues.length === 0) return { success: true as const, data: value }
  const known = z.safeParse(schema, inKnownWords(event), FIRST_EXPLAINED)
  // Paths in the explanation are those of what the client wrote.
  return known.success || issues[0]?.input === null ? known : z.safeParse(schema, event, FIRST_EXPLAINED)
}

/** `session.tools[0].function.name`, as the client wrote it. */
function spell(path: readonly PropertyKey[], found: ReturnType<typeof misplaced>): string {
  let spelled = ''
  for (const key of path) {
    if (typeof key === 'number') spelled += `[${key}]`
    else spelled += spelled === '' ? (found?.[String(key)] ?? String(key)) : `.${String(key)}`
  }
  return spelled
}

function isId(value: unknown): value is string {
  return typeof value === 'string' && value.length <= limits.idLength
}

function refusal(
  event: Fields,
  message: string,
  { issues, cause }: { readonly issues: readonly Issue[]; readonly cause?: unknown },
): UampError {
  const details: Record<string, unknown> = {}
  for (const name of ['event_id', 'session_id', 'type']) {
    if (isId(event[name])) details[name] = event[name]
  }
  return new UampError('invalid_request', message, { details: { ...details, issues }, cause })
}

/** Names no event, because the text was not parsed. */
function excessive({ bound, message }: JsonBoundError): UampError {
  const code = bound === 'members' ? 'too_large' : 'invalid_request'
  return new UampError(code, `An event ${message}`, { details: { issues: [{ path: '', message }] } })
}

const isAbsent = (value: unknown) => value === undefined || value === null

/**
 * What real clients send, though the specification says otherwise: root fields that are in the wrong place, with the path of each: the portal's `session.create` has agent and token inside `session`, and
 * older clients send `conversation_id` for `chat_id`.
 */
function misplaced(event: Fields): Readonly<Record<string, string>> | undefined {
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
function complete(event: Fields, found: ReturnType<typeof misplaced>, newId: () => string): Fields {
  const named = !isAbsent(event.event_id) && event.event_id !== ''
  if (named && !found) return event
  const completed: Record<string, unknown> = { ...event }
  if (!named) completed.event_id = newId()
  for (const name in found) completed[name] = isRecord(event.session) ? event.session[name] : event.conversation_id
  return completed
}
