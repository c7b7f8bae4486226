/** Accepts what real clients send, though the specification says something else, or nothing. */
import { isRecord } from './json.ts'

/** Extension slots, in which null has the meaning of their owner. */
const SLOTS = new Set(['extensions', 'metadata', 'context', 'parameters', 'schema', 'data', 'proof', 'ap2_credential', 'offer', 'answer'])

const ROLES: ReadonlySet<unknown> = new Set(['system', 'user', 'assistant', 'tool'])
const ITEMS: ReadonlySet<unknown> = new Set(['text', 'image', 'audio', 'video', 'file', 'tool_call', 'tool_result', 'thinking'])

/** Lists of content. Items of an unknown kind are left out. */
const CONTENT: ReadonlySet<string> = new Set(['content_items', 'output', 'partial_output'])

/**
 * What an event says, in the words that are known here: UAMP events §14.3 rule 1 lets a minor version add values. Content of an
 * unknown kind is left out, and an unknown role counts as the user's. A setting that is not known (a tool, a response format) stays, and
 * is refused: the client would wait for it in vain. Calls in the form of OpenAI's become ours. Slots stay as they are. Fields that are null are left out: the reference client in Python writes None for absent fields. `fromEntries`
 * treats `__proto__` as a plain key.
 */
export function inKnownWords(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inKnownWords)
  if (!isRecord(value)) return value
  const fields = Object.entries(value).flatMap(([name, field]): [string, unknown][] => {
    if (field === null) return []
    if (SLOTS.has(name)) return [[name, field]]
    if (name === 'role' && typeof field === 'string' && !ROLES.has(field)) return [[name, field === 'developer' ? 'system' : 'user']]
    if (name === 'tool_calls' && Array.isArray(field)) return [[name, field.map(plainCall)]]
    if (!CONTENT.has(name) || !Array.isArray(field)) return [[name, inKnownWords(field)]]
    return [[name, field.filter((item) => !isNewContent(item)).map(inKnownWords)]]
  })
  return Object.fromEntries(fields)
}

function isNewContent(item: unknown): boolean {
  return isRecord(item) && typeof item['type'] === 'string' && !ITEMS.has(item['type'])
}

/** `{ id, type: 'function', function: { name, arguments } }` as `{ id, name, arguments }`. */
function plainCall(call: unknown): unknown {
  return isRecord(call) && isRecord(call['function']) ? { id: call['id'], ...call['function'] } : call
}
