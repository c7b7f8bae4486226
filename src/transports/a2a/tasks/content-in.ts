import { base64 } from '../../../protocol/base64.ts'
import type { ContentItem } from '../../../protocol/content.ts'
import { isRecord } from '../../../protocol/json.ts'
import { textOf, type Message as CoreMessage } from '../../../protocol/message.ts'
import type { Message, Part, Struct } from '../model.ts'

/** What a client said, as a message of the conversation. */
export function toInput({ parts }: Message): CoreMessage {
  const items = parts.map((part) => toItem(unpaid(part)))
  return { role: 'user', content: textOf(items), content_items: items }
}

/** What somebody pays with is for whoever asks for it: it is no part of a conversation, which is stored and told to models. */
function unpaid(part: Part): Part {
  const { data } = part
  if (!isRecord(data) || data['type'] !== 'payment.submit' || !isRecord(data['payment'])) return part
  const { scheme, network, amount } = data['payment']
  return { ...part, data: { type: 'payment.submit', payment: { scheme, network, amount } } as Struct }
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
