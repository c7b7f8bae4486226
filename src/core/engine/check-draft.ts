import { SERVER_EVENTS, type Draft } from '../../protocol/events.ts'
import { Delta } from '../../protocol/server-events.ts'
import { nearest } from '../basics/nearest.ts'

/** Most levels of nested objects and lists: a deeper value contains itself, or breaks JSON as well. */
const DEPTH = 500

type Fields = Readonly<Record<string, unknown>>
type Paths = readonly (readonly string[])[]

/** Fields that the engine counts, joins or searches: anything but text there would break more than this response. */
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

const ITEMS: ReadonlySet<string> = new Set(Delta.def.options.map(({ shape }) => shape.type.def.values[0] as string))

/** A text that an agent yields without more is a piece of its answer. */
export function drafted<T extends object>(said: T | string): T | Draft {
  return typeof said === 'string' ? { type: 'response.delta', delta: { type: 'text', text: said } } : said
}

/** Throws if an agent yields something that is not an event. Agents are often written without types, so the error says what to do. */
export function checkEvent(given: unknown): asserts given is Fields & { readonly type: string } {
  if (isObject(given) && typeof given['type'] === 'string') return
  throw new TypeError(`The agent yielded ${describe(given)} and not an event: yield a text, or an object with a type`)
}

/** Throws if an event cannot be counted, stored or sent: it would harm everybody who shares the server. */
export function checkDraft(given: unknown): asserts given is Draft {
  checkEvent(given)
  if (!SERVER_EVENTS.has(given.type) && !given.type.startsWith('x.')) throw new TypeError(unknownType(given.type))
  const wrong = wrongField(given, given.type) ?? unwritable(given, DEPTH)
  if (wrong !== undefined) throw new TypeError(`The agent yielded ${given.type}, whose ${wrong}`)
}

/** Events that a newer version adds do not get here: remote agents leave out what they do not know. */
function unknownType(type: string): string {
  const near = nearest(type, SERVER_EVENTS)
  const hint = near === undefined ? 'events of your own begin with "x."' : `did you mean "${near}"?`
  return `The agent yielded an event of the type "${type.slice(0, 100)}", which is no event: ${hint}`
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
  // A kind that is like none of ours may be one of a newer version: every protocol leaves it out.
  const near = ITEMS.has(item['type']) ? undefined : nearest(item['type'], ITEMS)
  if (near !== undefined) return `${place}.type is "${item['type']}": did you mean "${near}"?`
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

/** Says where a value is that JSON cannot express, or would write in an unreadable form. */
function unwritable(value: unknown, depth: number): string | undefined {
  if (typeof value === 'bigint') return mustBe('', value, 'a number or text')
  if (typeof value !== 'object' || value === null) return undefined
  if (ArrayBuffer.isView(value)) return mustBe('', value, 'text, such as base64')
  // `toJSON` may throw: let it do so here.
  if ('toJSON' in value) JSON.stringify(value)
  if (depth === 0) return ` is deeper than ${DEPTH} levels, or contains itself`
  for (const key in value) {
    const wrong = unwritable((value as Fields)[key], depth - 1)
    if (wrong === undefined) continue
    // The path to a value that contains itself would be hundreds of names long.
    return depth < DEPTH - 10 ? wrong : key + (wrong.startsWith(' ') ? '' : '.') + wrong
  }
  return undefined
}

/** Throws if an agent's `run` or a handler's `process` returned something that cannot be iterated. */
export function checkGenerator<T>(given: AsyncIterable<T>): AsyncIterable<T> {
  if (typeof (given as AsyncIterable<T> | undefined)?.[Symbol.asyncIterator] === 'function') return given
  // Nobody awaits this promise: without a handler its rejection would end the process.
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

/** The text of a delta that is only text: by far the most frequent event, so it skips all other checks. */
export function plainText(draft: Draft | undefined): string | undefined {
  if (draft?.type !== 'response.delta' || (draft.delta as Delta | undefined)?.type !== 'text') return undefined
  const { text, refusal } = draft.delta as { readonly text?: unknown; readonly refusal?: unknown }
  return typeof text === 'string' && refusal === undefined ? text : undefined
}
