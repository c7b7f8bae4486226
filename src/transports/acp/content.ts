import { mediaSource } from '../../wire/media-source.ts'
import type { ContentItem } from '../../protocol/content.ts'
import type { ClientEvent } from '../../protocol/events.ts'
import type { ContentBlock } from './schema.ts'

/** What a client said, as inputs of one message: a text with its mentions in their places, what they hold below it, then media. */
export function toInputs(blocks: readonly ContentBlock[], newId: () => string): ClientEvent[] {
  let text = ''
  let context = ''
  const media: ClientEvent[] = []
  for (const block of blocks) {
    switch (block.type) {
      case 'text':
        text += block.text
        break
      case 'resource_link':
        text += mention(block.uri, block.name)
        break
      case 'image':
        media.push({ type: 'input.image', event_id: newId(), image: block.data, format: subtype(block.mimeType) })
        break
      case 'audio':
        media.push({ type: 'input.audio', event_id: newId(), audio: block.data, format: subtype(block.mimeType), is_final: true })
        break
      case 'resource': {
        const { resource } = block
        const { uri, mimeType } = resource
        text += mention(uri, fileName(uri))
        if ('text' in resource) context += `\n<context ref="${uri}">\n${resource.text}\n</context>`
        else
          media.push({ type: 'input.file', event_id: newId(), file: resource.blob, filename: fileName(uri), mime_type: mimeType ?? BYTES })
      }
    }
  }
  const said = text + context
  return said === '' && media.length > 0 ? media : [{ type: 'input.text', event_id: newId(), text: said }, ...media]
}

const BYTES = 'application/octet-stream'

function mention(uri: string, name: string): string {
  return `[@${name}](${uri})`
}

function fileName(uri: string): string {
  return uri.slice(uri.lastIndexOf('/') + 1) || uri
}

function subtype(mime: string): string {
  return mime.slice(mime.indexOf('/') + 1)
}

/** A content item as a block. Undefined for what is no content, or what nobody but us could fetch. */
export function toBlock(item: ContentItem): ContentBlock | undefined {
  if (item.type === 'text') return { type: 'text', text: item.text }
  if (item.type === 'tool_call' || item.type === 'tool_result' || item.type === 'thinking') return undefined
  const source = mediaSource(item)
  if (!source) return undefined
  const name = item.type === 'file' ? item.filename : (item.description ?? item.type)
  if ('url' in source) return { type: 'resource_link', uri: source.url, name, mimeType: source.mime }
  if (item.type === 'image' || item.type === 'audio') return { type: item.type, data: source.data, mimeType: source.mime }
  return { type: 'resource', resource: { uri: `uamp://content/${item.content_id ?? name}`, blob: source.data, mimeType: source.mime } }
}
