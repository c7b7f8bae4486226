import { parseJson } from '../../protocol/json.ts'
import type { Conversation } from '../../upstream/places.ts'
import { fromBase64 } from '../../protocol/base64.ts'
import type { ContentItem, MediaItem } from '../../protocol/content.ts'
import { plainText, type Message } from '../../protocol/message.ts'
import { mediaSource } from '../../wire/media-source.ts'
import { note } from '../../wire/media-parts.ts'
import type { Part } from '../../wire/a2a/parts.ts'

/** Characters of an earlier conversation that are told. Of a longer one the beginning is left out. */
const TRANSCRIPT = 100_000

/** The parts of a message. Where the agent there cannot know what was said before, that is told first. */
export function toParts({ before, now }: Conversation, { known }: { readonly known: boolean }): Part[] {
  const said = known ? '' : transcript(before)
  const parts = [...(said === '' ? [] : [{ text: said }]), ...now.flatMap(partsOf)]
  // A message without parts is refused by all.
  return parts.length > 0 ? parts : [{ text: '' }]
}

function partsOf({ content, content_items }: Message): Part[] {
  if (!content_items) return content === undefined || content === '' ? [] : [{ text: content }]
  return content_items.flatMap(partOf)
}

function partOf(item: ContentItem): Part[] {
  switch (item.type) {
    case 'text':
      return item.text === '' ? [] : [{ text: item.text }]
    case 'image':
    case 'audio':
    case 'video':
    case 'file':
      return [mediaPart(item)]
    default:
      return []
  }
}

function mediaPart(item: MediaItem): Part {
  const source = mediaSource(item)
  if (!source) return { text: note(item) }
  const data = item.type === 'file' && item.filename === 'data.json' && 'data' in source ? dataIn(source.data) : undefined
  if (data !== undefined) return { data }
  const about = { mediaType: source.mime, ...(item.type === 'file' && { filename: item.filename }) }
  return 'data' in source ? { raw: source.data, ...about } : { url: source.url, ...about }
}

/** A data part becomes a file of this name when it comes in, and one again when it goes out. */
function dataIn(base64: string): unknown {
  try {
    return parseJson(new TextDecoder('utf-8', { fatal: true }).decode(fromBase64(base64)))
  } catch {
    return undefined
  }
}

const WHO = { user: 'User', assistant: 'Assistant' } as const

function transcript(messages: readonly Message[]): string {
  const lines = messages.flatMap((message) => {
    const text = plainText(message)
    return (message.role === 'user' || message.role === 'assistant') && text !== '' ? [`${WHO[message.role]}: ${text}`] : []
  })
  if (lines.length === 0) return ''
  const whole = lines.join('\n\n')
  return `The conversation so far:\n\n${whole.length > TRANSCRIPT ? `…${whole.slice(-TRANSCRIPT)}` : whole}`
}
