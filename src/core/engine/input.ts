import { joinBase64 } from '../../protocol/base64.ts'
import { withContentId, withIds, type ContentItem } from '../../protocol/content.ts'
import type { Delta } from '../../protocol/server-events.ts'
import { UampError } from '../../protocol/errors.ts'
import type { ClientEvent } from '../../protocol/events.ts'
import { plainText, slotsOf, textOf, type Message } from '../../protocol/message.ts'
import type { InputEvent } from '../ports/session.ts'
import { unpaid } from '../secrets/sealing.ts'
import { withDataIn } from '../tools/tool-data.ts'
import { textLength } from '../basics/weight.ts'

export function isInput(event: ClientEvent): event is InputEvent {
  switch (event.type) {
    case 'input.text':
    case 'input.audio':
    case 'input.image':
    case 'input.video':
    case 'input.file':
      return true
    default:
      return false
  }
}

/** A client's tool result without payments, because results are shown and stored, and with content ids. */
export function tidyResult<E extends ClientEvent>(event: E, newId: () => string): E {
  if (event.type !== 'tool.result' || !event.content_items) return event
  const items = withIds(withDataIn(event.content_items, unpaid), newId)
  return items === event.content_items ? event : { ...event, content_items: items }
}

/** UAMP events §8.5.1: the content item that an input becomes. */
function toItem(event: InputEvent, newId: () => string): ContentItem {
  const handle = event.type === 'input.text' ? {} : { ...pick(event, 'content_id'), ...pick(event, 'description') }
  switch (event.type) {
    case 'input.text':
      return { type: 'text', text: event.text }
    case 'input.audio':
      return withContentId({ type: 'audio', audio: event.audio, format: event.format, ...handle }, newId)
    case 'input.image':
      return withContentId({ type: 'image', image: event.image, ...pick(event, 'format'), ...pick(event, 'detail'), ...handle }, newId)
    case 'input.video':
      return withContentId({ type: 'video', video: event.video, ...pick(event, 'format'), ...handle }, newId)
    case 'input.file': {
      const { file, filename, mime_type } = event
      return withContentId({ type: 'file', file, filename, mime_type, ...handle }, newId)
    }
  }
}

export interface Gathered {
  readonly messages: readonly Message[]
  /** The client sent the whole conversation, which replaces what the session remembers. */
  readonly stateless: boolean
}

/**
 * UAMP events §8.5.1: all inputs since the last response become one message; a new one begins only when the role changes. Throws
 * `invalid_request` when chunks of audio cannot be joined.
 */
export function gatherInput(events: readonly InputEvent[], newId: () => string): Gathered {
  let messages: Message[] = []
  let stateless = false
  let items: ContentItem[] = []
  let slots: ReturnType<typeof slotsOf> = {}
  let role: Message['role'] = 'user'
  /** UAMP events §5.7: chunks up to `is_final` are one recording. Holds those of the last item until it is complete. */
  let chunks: string[] | undefined
  /** Joins the chunks once, at the end: joining them one by one would take quadratic time. */
  const endRecording = (): void => {
    const last = items.at(-1)
    if (chunks && chunks.length > 1 && last?.type === 'audio') items[items.length - 1] = { ...last, audio: joinAudio(chunks) }
    chunks = undefined
  }
  const flush = (): void => {
    endRecording()
    if (items.length > 0) messages.push({ role, content: textOf(items), content_items: [...items], ...slots })
    items = []
    slots = {}
  }
  for (const event of events) {
    const next = event.type === 'input.text' ? (event.role ?? 'user') : 'user'
    if (next !== role) flush()
    role = next
    if (event.type === 'input.text' && event.messages) {
      flush()
      messages = withContentIds(event.messages, newId)
      stateless = true
      // Most clients that send the whole conversation include the new text in it.
      const last = messages.at(-1)
      if (last && (event.text === '' || (last.role === role && plainText(last) === event.text))) {
        messages[messages.length - 1] = { ...last, ...slotsOf(event, last) }
        continue
      }
      if (event.text === '') continue
    }
    slots = slotsOf(event, slots)
    const chunk = event.type === 'input.audio' && typeof event.audio === 'string' ? event.audio : undefined
    if (chunks && event.type === 'input.audio') {
      if (chunk !== undefined) chunks.push(chunk)
    } else {
      endRecording()
      items.push(toItem(event, newId))
      if (chunk !== undefined) chunks = [chunk]
    }
    if (chunk === undefined || (event.type === 'input.audio' && event.is_final === true)) endRecording()
  }
  flush()
  return { messages, stateless }
}

/** A conversation that a client sends, as agents rely on it: media has content ids, and `content` is the text of the items (§8.5). */
export function withContentIds(messages: readonly Message[], newId: () => string): Message[] {
  return messages.map((message) => {
    const { role, content, content_items: given } = message
    if (!given) return message
    const items = withIds(given, newId)
    // The content of a tool's message is its result; the items beside it are media.
    if (role === 'tool') return { ...message, content_items: items }
    const hasText = items.some(({ type }) => type === 'text')
    // Some clients put only the media into the items, and the words beside them.
    if (!hasText && role === 'user' && content) return { ...message, content_items: [{ type: 'text', text: content }, ...items] }
    return { ...message, ...(hasText && { content: textOf(items) }), content_items: items }
  })
}

function joinAudio(chunks: readonly string[]): string {
  try {
    return joinBase64(chunks)
  } catch (cause) {
    throw new UampError('invalid_request', 'The chunks of "audio" must be base64, so that they can be joined', { cause })
  }
}

function pick<T extends object, K extends keyof T>(from: T, key: K): { [P in K]: Exclude<T[P], undefined> } | Record<never, never> {
  return from[key] === undefined ? {} : ({ [key]: from[key] } as { [P in K]: Exclude<T[P], undefined> })
}

/** Gives media a content id. Audio without one gets none: it is a chunk of a stream, not an item. */
export function withHandle(delta: Delta, newId: () => string): Delta {
  return delta.type === 'audio' || delta.type === 'tool_progress' ? delta : withContentId(delta, newId)
}

/** Fields in which clients may put anything. AG-UI's `state` is not among them: only the memory budget bounds it. */
const SLOTS: ReadonlySet<string> = new Set(['extensions', 'metadata', 'context', 'forwardedProps', '_meta', 'offer', 'answer'])

/** How many levels deep to search: an A2A part is in a list, in a message, in the parameters. */
const LEVELS = 6

/** Throws `too_large` when a slot in a client's message holds more than `limit` bytes of JSON. */
export function checkSlots(value: unknown, limit: number, levels = LEVELS): void {
  if (typeof value !== 'object' || value === null || levels === 0) return
  for (const key in value) {
    const member = (value as Record<string, unknown>)[key]
    if (typeof member !== 'object' || member === null) continue
    if (!SLOTS.has(key)) checkSlots(member, limit, levels - 1)
    else if (textLength(member, limit) > limit) {
      throw new UampError('too_large', `"${key}" holds more than ${limit} bytes`, { details: { field: key, limit } })
    }
  }
}
