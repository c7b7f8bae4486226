import { base64 } from '../../../protocol/base64.ts'
import type { ContentItem } from '../../../protocol/content.ts'
import { textOf, type Message as CoreMessage } from '../../../protocol/message.ts'
import type { Message, Part } from '../model.ts'

/** What a client said, as a message of the conversation. */
export function toInput({ parts }: Message): CoreMessage {
  const items = parts.map(toItem)
  return { role: 'user', content: textOf(items), content_items: items }
}

export function toItem(part: Part): ContentItem {
  const { text, raw, url, data, filename, mediaType = '' } = part
  if (text !== undefined) return { type: 'text', text }
  const source = raw ?? (url === undefined ? undefined : { url })
  // Agents know files, and that JSON is one: there is no content item for bare data.
  if (source === undefined) {
    return {
      type: 'file',
      file: base64(new TextEncoder().encode(JSON.stringify(data ?? null))),
      filename: filename ?? 'data.json',
      mime_type: JSON_TYPE,
    }
  }
  const [kind, format] = mediaType.split(';')[0]?.split('/') ?? []
  const how = format === undefined || format === '' ? {} : { format }
  const named = filename === undefined ? {} : { description: filename }
  switch (kind) {
    case 'image':
      return { type: 'image', image: source, ...how, ...named }
    case 'audio':
      return { type: 'audio', audio: source, ...how, ...named }
    case 'video':
      return { type: 'video', video: source, ...how, ...named }
    default:
      return { type: 'file', file: source, filename: filename ?? 'file', mime_type: mediaType || 'application/octet-stream' }
  }
}

export const JSON_TYPE = 'application/json'

/** The text of a message, its parts one below the other. */
export function plainText({ parts }: Message): string {
  return parts.flatMap(({ text }) => (text === undefined ? [] : [text])).join('\n')
}
