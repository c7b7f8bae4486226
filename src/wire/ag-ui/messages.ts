/** Messages of AG-UI, as both sides write them. */
import { isMedia, type ContentItem, type MediaItem } from '../../protocol/content.ts'
import { textOf, type Message } from '../../protocol/message.ts'
import { mediaSource } from '../media-source.ts'

export interface WireMessage {
  readonly id: string
  readonly role: string
  content?: unknown
  toolCalls?: readonly unknown[]
  readonly toolCallId?: string
  readonly [field: string]: unknown
}

const KINDS = { image: 'image', audio: 'audio', video: 'video', file: 'document' } as const

/** The activity type for media, which an assistant's message has no place for. Pages can draw it. */
export const CONTENT_ACTIVITY = 'uamp.content'

/** Text, or parts if there is more than text. Media that only this server could find are left out. */
export function contentOf(items: readonly ContentItem[] | undefined, text: string): string | object[] {
  const media = items?.filter(isMedia).flatMap(partOf) ?? []
  return media.length === 0 ? text : [...(text === '' ? [] : [{ type: 'text', text }]), ...media]
}

function partOf(item: MediaItem): object[] {
  const source = mediaSource(item)
  if (!source) return []
  const value = 'data' in source ? { type: 'data', value: source.data } : { type: 'url', value: source.url }
  return [{ type: KINDS[item.type], source: { ...value, mimeType: source.mime } }]
}

/** The media of a part as a content item. `kind`: the type of the part; for a document its media type decides. */
export function mediaItem(
  kind: string,
  source: { readonly type: string; readonly value: string },
  { mimeType = '', filename = 'file' }: { readonly mimeType?: string | undefined; readonly filename?: string | undefined } = {},
): MediaItem {
  const value = source.type === 'data' ? source.value : { url: source.value }
  const [type, format] = mimeType.split(/[/;]/)
  const how = format === undefined || format === '' ? {} : { format }
  switch (kind === 'document' || kind === 'binary' ? type : kind) {
    case 'image':
      return { type: 'image', image: value, ...how }
    case 'audio':
      return { type: 'audio', audio: value, ...how }
    case 'video':
      return { type: 'video', video: value, ...how }
    default:
      return { type: 'file', file: value, filename, mime_type: mimeType === '' ? 'application/octet-stream' : mimeType }
  }
}

/** A conversation. `signed`: only thoughts with a signature, because servers of 0.0.x may not know others. */
export function toWireMessages(messages: readonly Message[], nextId: () => string, { signed = false } = {}): WireMessage[] {
  return messages.flatMap((message): WireMessage[] => {
    const { role, content = '', content_items: items = [], tool_call_id = '', is_error } = message
    const text = items.length > 0 ? textOf(items) : content
    if (role === 'system') return [{ id: nextId(), role, content: text }]
    if (role === 'user') return [{ id: nextId(), role, content: contentOf(items, text) }]
    if (role === 'tool') {
      return [{ id: nextId(), role, toolCallId: tool_call_id, content: contentOf(items, text), ...(is_error && { error: text }) }]
    }
    return saidBy(message, text, { nextId, signed })
  })
}

function saidBy(
  { content_items: items = [], tool_calls = [] }: Message,
  text: string,
  { nextId, signed }: { readonly nextId: () => string; readonly signed: boolean },
): WireMessage[] {
  const thoughts = items.flatMap((item): WireMessage[] => {
    if (item.type !== 'thinking' || (signed && item.signature === undefined)) return []
    const encrypted = item.signature !== undefined && { encryptedValue: item.signature }
    return [{ id: nextId(), role: 'reasoning', content: item.thinking, ...encrypted }]
  })
  const toolCalls = tool_calls.map(({ id, name, arguments: args, encrypted_value }) => ({
    id,
    type: 'function',
    function: { name, arguments: args },
    ...(encrypted_value !== undefined && { encryptedValue: encrypted_value }),
  }))
  const calls = toolCalls.length > 0 && { toolCalls }
  const value = items.findLast((item) => item.type === 'text' && item.encrypted_value !== undefined)
  const encrypted = value?.type === 'text' && { encryptedValue: value.encrypted_value }
  const message = { role: 'assistant', ...(text !== '' && { content: text }), ...calls, ...encrypted }
  const said = text !== '' || calls || encrypted ? [{ id: nextId(), ...message }] : []
  const media = items.filter(isMedia).map((item) => ({ id: nextId(), role: 'activity', activityType: CONTENT_ACTIVITY, content: { item } }))
  return [...thoughts, ...said, ...(signed ? [] : media)]
}

/** The context of a client, as an agent reads it at the end of its instructions. */
export function contextText(context: readonly { readonly description?: unknown; readonly value?: unknown }[]): string | undefined {
  const lines = context.map(
    ({ description, value }) => `${String(description)}: ${typeof value === 'string' ? value : JSON.stringify(value)}`,
  )
  return lines.length === 0 ? undefined : `Context:\n${lines.join('\n')}`
}
