/** How the inputs of a client become messages. Servers and clients share it: a signature covers the messages. */
import { joinBase64 } from './base64.ts'
import { measures, withContentId, withIds, type ContentItem } from './content.ts'
import { UampError } from './errors.ts'
import type { ClientEvent, EventOf } from './events.ts'
import { plainText, slotsOf, textOf, type Message } from './message.ts'

export type InputEvent = EventOf<'input.text' | 'input.audio' | 'input.image' | 'input.video' | 'input.file'>

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

/** What the client says of its media. */
function measuresOf(event: InputEvent) {
  const given = Object.keys(measures).flatMap((name) => {
    const value = (event as Readonly<Record<string, unknown>>)[name]
    return value === undefined ? [] : [[name, value] as const]
  })
  return Object.fromEntries(given) as { [Name in keyof typeof measures]?: never }
}

/** UAMP events §8.5.1: the content item that an input becomes. */
function toItem(event: InputEvent, newId: () => string): ContentItem {
  const handle = event.type === 'input.text' ? {} : { ...pick(event, 'content_id'), ...pick(event, 'description') }
  switch (event.type) {
    case 'input.text':
      return { type: 'text', text: event.text }
    case 'input.audio':
      return withContentId({ type: 'audio', audio: event.audio, format: event.format, ...measuresOf(event), ...handle }, newId)
    case 'input.image':
      return withContentId(
        { type: 'image', image: event.image, ...pick(event, 'format'), ...pick(event, 'detail'), ...measuresOf(event), ...handle },
        newId,
      )
    case 'input.video':
      return withContentId({ type: 'video', video: event.video, ...pick(event, 'format'), ...measuresOf(event), ...handle }, newId)
    case 'input.file': {
      const { file, filename, mime_type } = event
      return withContentId({ type: 'file', file, filename, mime_type, ...pick(event, 'size_bytes'), ...handle }, newId)
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
