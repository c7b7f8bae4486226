import { withContentId, type ContentItem } from '../protocol/content.ts'
import type { ClientEvent, EventOf } from '../protocol/events.ts'
import { textOf, type Message } from '../protocol/message.ts'
import type { InputEvent } from './ports/session.ts'
import { unpaid } from './sealing.ts'
import { withDataIn } from './tool-data.ts'

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

/** UAMP events §8.5.1: everything since the last response is one message, a new one only where the role changes. */
export function gatherInput(events: readonly InputEvent[], newId: () => string): Gathered {
  let messages: Message[] = []
  let stateless = false
  let items: ContentItem[] = []
  let role: Message['role'] = 'user'
  /** The last item is an audio stream that `is_final` has not ended yet. */
  let streaming = false
  const flush = (): void => {
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
    const before = items.at(-1)
    if (event.type === 'input.audio' && streaming && before?.type === 'audio') items[items.length - 1] = joinAudio(before, event)
    else items.push(toItem(event, newId))
    streaming = event.type === 'input.audio' && event.is_final !== true && typeof event.audio === 'string'
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

/** UAMP events §5.7: chunks up to `is_final` are one recording. */
function joinAudio(item: Extract<ContentItem, { type: 'audio' }>, { audio }: EventOf<'input.audio'>): ContentItem {
  if (typeof item.audio !== 'string' || typeof audio !== 'string') return item
  // Base64 texts can be put together as they are unless the first one is padded.
  return { ...item, audio: item.audio.endsWith('=') ? btoa(atob(item.audio) + atob(audio)) : item.audio + audio }
}

/** Where both are there, the items are the whole and `content` is their text. */
function textOfMessage(message: Message): string {
  return message.content_items ? textOf(message.content_items) : (message.content ?? '')
}

function pick<T extends object, K extends keyof T>(from: T, key: K): { [P in K]: Exclude<T[P], undefined> } | Record<never, never> {
  return from[key] === undefined ? {} : ({ [key]: from[key] } as { [P in K]: Exclude<T[P], undefined> })
}
