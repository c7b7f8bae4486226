import { joinBase64 } from '../../protocol/base64.ts'
import { withContentId, type ContentItem } from '../../protocol/content.ts'
import type { Delta } from '../../protocol/server-events.ts'
import { UampError } from '../../protocol/errors.ts'
import type { ClientEvent } from '../../protocol/events.ts'
import { textOf, type Message } from '../../protocol/message.ts'
import type { InputEvent } from '../ports/session.ts'
import { unpaid } from '../secrets/sealing.ts'
import { withDataIn } from '../tools/tool-data.ts'

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

/** An answer as a response may tell it again: what a client's tool gave is shown and stored, and no place to pay in. */
export function withoutPayment<E extends ClientEvent>(event: E): E {
  if (event.type !== 'tool.result' || !event.content_items) return event
  const items = withDataIn(event.content_items, unpaid)
  return items === event.content_items ? event : { ...event, content_items: [...items] }
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
  /** The client sent the whole conversation: what the session remembers does not count. */
  readonly stateless: boolean
}

/**
 * UAMP events §8.5.1: everything since the last response is one message, a new one only where the role changes. Throws
 * `invalid_request` where chunks of audio cannot be one recording.
 */
export function gatherInput(events: readonly InputEvent[], newId: () => string): Gathered {
  let messages: Message[] = []
  let stateless = false
  let items: ContentItem[] = []
  let role: Message['role'] = 'user'
  /** UAMP events §5.7: chunks up to `is_final` are one recording. Those of the last item, as long as it may go on. */
  let chunks: string[] | undefined
  /** Once, at the end: put together one by one, each chunk would be as much work as all before it. */
  const endRecording = (): void => {
    const last = items.at(-1)
    if (chunks && chunks.length > 1 && last?.type === 'audio') items[items.length - 1] = { ...last, audio: joinAudio(chunks) }
    chunks = undefined
  }
  const flush = (): void => {
    endRecording()
    if (items.length > 0) messages.push({ role, content: textOf(items), content_items: [...items] })
    items = []
  }
  for (const event of events) {
    const next = event.type === 'input.text' ? (event.role ?? 'user') : 'user'
    if (next !== role) flush()
    role = next
    if (event.type === 'input.text' && event.messages) {
      flush()
      messages = withContentIds(event.messages, newId)
      stateless = true
      // Clients that send the whole conversation mostly have the new text in it already.
      const last = messages.at(-1)
      if (event.text === '' || (last?.role === role && textOfMessage(last) === event.text)) continue
    }
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

/** UAMP events §8.5.4: also media that a client sends along with the whole conversation has a content id. */
export function withContentIds(messages: readonly Message[], newId: () => string): Message[] {
  return messages.map((message) =>
    message.content_items ? { ...message, content_items: message.content_items.map((item) => withContentId(item, newId)) } : message,
  )
}

function joinAudio(chunks: readonly string[]): string {
  try {
    return joinBase64(chunks)
  } catch (cause) {
    throw new UampError('invalid_request', 'The chunks of "audio" must be base64, to be put together', { cause })
  }
}

/** Where both are there, the items are the whole and `content` is their text. */
function textOfMessage(message: Message): string {
  return message.content_items ? textOf(message.content_items) : (message.content ?? '')
}

function pick<T extends object, K extends keyof T>(from: T, key: K): { [P in K]: Exclude<T[P], undefined> } | Record<never, never> {
  return from[key] === undefined ? {} : ({ [key]: from[key] } as { [P in K]: Exclude<T[P], undefined> })
}

/** Media always has a content id. Not audio without one: that is a chunk of a stream, not the item. */
export function withHandle(delta: Delta, newId: () => string): Delta {
  return delta.type === 'image' || delta.type === 'video' || delta.type === 'file' ? withContentId(delta, newId) : delta
}
