import type { Draft } from '../../protocol/events.ts'
import type { Delta } from '../../protocol/server-events.ts'

/** Objects and lists one inside the other; what is deeper contains itself, or cannot be written as JSON either. */
const DEPTH = 500

type Fields = Readonly<Record<string, unknown>>
type Paths = readonly (readonly string[])[]

/** Fields that are counted, joined or searched: anything but text there would break more than this response. */
const TEXTS: Readonly<Record<string, Paths>> = {
  thinking: [['content']],
  'transcript.delta': [['transcript']],
  'audio.delta': [['audio']],
  'tool.call': [['call_id'], ['name'], ['arguments']],
  'response.error': [
    ['error', 'code'],
    ['error', 'message'],
  ],
}

const ITEM_TEXTS: Readonly<Record<string, Paths>> = {
  text: [['text']],
  thinking: [['thinking']],
  tool_call: [
    ['tool_call', 'id'],
    ['tool_call', 'name'],
    ['tool_call', 'arguments'],
  ],
  tool_result: [
    ['tool_result', 'call_id'],
    ['tool_result', 'result'],
  ],
  tool_progress: [['tool_progress', 'call_id']],
}

/** Agents are written by hand, often without types: throws, and says what to do, when one yields what is no event. */
export function checkEvent(given: unknown): asserts given is Fields & { readonly type: string } {
  if (isObject(given) && typeof given['type'] === 'string') return
  throw new TypeError(`The agent yielded ${describe(given)} and not an event: yield text('…'), or an object with a type`)
}

/** The same for what cannot be counted, stored and sent: that would harm all who share the server. */
export function checkDraft(given: unknown): asserts given is Draft {
  checkEvent(given)
  const wrong = wrongField(given, given.type) ?? unwritable(given, DEPTH)
  if (wrong !== undefined) throw new TypeError(`The agent yielded ${given.type}, whose ${wrong}`)
}

function wrongField(draft: Fields, type: string): string | undefined {
  const texts = TEXTS[type]
  if (texts) return notText(draft, texts)
  if (type === 'response.delta') return wrongItem(draft['delta'], 'delta')
  if (type === 'usage.delta') return isObject(draft['delta']) ? undefined : mustBe('delta', draft['delta'], 'an object')
  if (type !== 'response.done') return undefined
  const output = isObject(draft['response']) ? draft['response']['output'] : undefined
  if (!Array.isArray(output)) return mustBe('response.output', output, 'an array')
  for (const [index, item] of output.entries()) {
    const wrong = wrongItem(item, `response.output[${index}]`)
    if (wrong !== undefined) return wrong
  }
  return undefined
}

function wrongItem(item: unknown, place: string): string | undefined {
  if (!isObject(item) || typeof item['type'] !== 'string') return mustBe(place, item, 'an object with a type')
  const wrong = notText(item, ITEM_TEXTS[item['type']] ?? [])
  return wrong === undefined ? undefined : `${place}.${wrong}`
}

function notText(from: Fields, paths: Paths): string | undefined {
  for (const path of paths) {
    let value: unknown = from
    for (const name of path) value = isObject(value) ? value[name] : undefined
    if (typeof value === 'string') continue
    return mustBe(path.join('.'), value, path.at(-1) === 'arguments' || path.at(-1) === 'result' ? 'JSON text' : 'text')
  }
  return undefined
}

/** What JSON has no place for, or would write as something that nobody can read. */
function unwritable(value: unknown, depth: number): string | undefined {
  if (typeof value === 'bigint') return mustBe('', value, 'a number or text')
  if (typeof value !== 'object' || value === null) return undefined
  if (ArrayBuffer.isView(value)) return mustBe('', value, 'text, such as base64')
  // It makes its text itself, and may fail.
  if ('toJSON' in value) JSON.stringify(value)
  if (depth === 0) return ` is deeper than ${DEPTH} levels, or contains itself`
  for (const key in value) {
    const wrong = unwritable((value as Fields)[key], depth - 1)
    if (wrong === undefined) continue
    // The way down to what contains itself would be long.
    return depth < DEPTH - 10 ? wrong : key + (wrong.startsWith(' ') ? '' : '.') + wrong
  }
  return undefined
}

/** What `run` of an agent, or `process` of a handler, gave, if it can be iterated. */
export function checkGenerator<T>(given: AsyncIterable<T>): AsyncIterable<T> {
  if (typeof (given as AsyncIterable<T> | undefined)?.[Symbol.asyncIterator] === 'function') return given
  // An async function that fails, and that nobody waits for, would end the process.
  if (given instanceof Promise) void given.catch(() => undefined)
  throw new TypeError(`The agent returned ${describe(given)} and not a generator: write it as async function*, and yield what it says`)
}

function mustBe(path: string, value: unknown, wanted: string): string {
  return `${path} is ${describe(value)}: it must be ${wanted}`
}

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function describe(value: unknown): string {
  if (value instanceof Promise) return 'a promise (await it)'
  if (value === undefined || value === null) return String(value)
  if (Array.isArray(value)) return 'an array'
  if (ArrayBuffer.isView(value)) return 'bytes'
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}

/** The text of a delta that is text and nothing else: by far the most there is, and nothing else of it is looked at. */
export function plainText(draft: Draft | undefined): string | undefined {
  if (draft?.type !== 'response.delta' || (draft.delta as Delta | undefined)?.type !== 'text') return undefined
  const { text, refusal } = draft.delta as { readonly text?: unknown; readonly refusal?: unknown }
  return typeof text === 'string' && refusal === undefined ? text : undefined
}
