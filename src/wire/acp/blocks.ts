/** Content blocks of ACP, which are those of MCP. */
import * as z from 'zod/mini'
import { isBase64 } from '../../protocol/base64.ts'
import type { ContentItem } from '../../protocol/content.ts'
import { mediaSource } from '../media-source.ts'

const text = z.nullish(z.string())
const data = z.string().check(z.refine(isBase64, 'must be base64'))
/** RFC 9110 §8.3.1, whatever its parameters are. */
const media = (type: string) => z.string().check(z.regex(new RegExp(`^${type}/[\\w.+-]+ *(;.*)?$`, 'i'), 'must be a media type that fits'))

export const ContentBlock = z.discriminatedUnion('type', [
  z.object({ type: z.literal('text'), text: z.string() }),
  z.object({ type: z.literal('image'), data, mimeType: media('image'), uri: text }),
  z.object({ type: z.literal('audio'), data, mimeType: media('audio') }),
  z.object({ type: z.literal('resource_link'), uri: z.string(), name: z.string(), mimeType: text }),
  z.object({
    type: z.literal('resource'),
    resource: z.union([
      z.object({ uri: z.string(), text: z.string(), mimeType: text }),
      z.object({ uri: z.string(), blob: data, mimeType: z.nullish(media('[\\w.+-]+')) }),
    ]),
  }),
])
export type ContentBlock = z.infer<typeof ContentBlock>

/** The content that an agent takes beside text and links: its `promptCapabilities`. */
export interface Accepts {
  readonly image: boolean
  readonly audio: boolean
  readonly embeddedContext: boolean
}

const EVERYTHING: Accepts = { image: true, audio: true, embeddedContext: true }

/**
 * A content item as a block. `undefined` for items that are no content, and for content that only we could fetch. An agent that does
 * not take media gets a note in words.
 */
export function toBlock(item: ContentItem, accepts = EVERYTHING): ContentBlock | undefined {
  if (item.type === 'text') return { type: 'text', text: item.text }
  if (item.type === 'tool_call' || item.type === 'tool_result' || item.type === 'thinking') return undefined
  const source = mediaSource(item)
  if (!source) return undefined
  const { mime: mimeType } = source
  const name = item.type === 'file' ? item.filename : (item.description ?? item.type)
  if ('url' in source) return { type: 'resource_link', uri: source.url, name, mimeType }
  if ((item.type === 'image' && accepts.image) || (item.type === 'audio' && accepts.audio))
    return { type: item.type, data: source.data, mimeType }
  if (!accepts.embeddedContext) return { type: 'text', text: `[${item.type}: ${name}, which cannot be shown here]` }
  return { type: 'resource', resource: { uri: `uamp://content/${item.content_id ?? name}`, blob: source.data, mimeType } }
}

/** A block as a content item. Text of a resource counts as text. */
export function toItem(block: ContentBlock): Extract<ContentItem, { type: 'text' | 'image' | 'audio' | 'file' }> {
  switch (block.type) {
    case 'text':
      return block
    case 'resource_link':
      return { type: 'text', text: `[${block.name}](${block.uri})` }
    case 'image':
      return { type: 'image', image: block.data, format: formatOf(block.mimeType) }
    case 'audio':
      return { type: 'audio', audio: block.data, content_id: crypto.randomUUID(), format: formatOf(block.mimeType) }
    case 'resource': {
      const { uri, mimeType, ...held } = block.resource
      if ('text' in held) return { type: 'text', text: held.text }
      const filename = uri.slice(uri.lastIndexOf('/') + 1)
      return { type: 'file', file: held.blob, filename, mime_type: mimeType ?? 'application/octet-stream' }
    }
  }
}

/** The format of an image or a sound: `png` of `image/png`. */
export function formatOf(mime: string): string {
  return /\/([^ ;]+)/.exec(mime)?.[1] ?? ''
}
