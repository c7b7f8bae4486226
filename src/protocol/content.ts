/** Content items: UAMP events §8.4. */
import * as z from 'zod/mini'
import { list } from './json.ts'
import { limits } from './limits.ts'

/** §8.4.1: a URL is preferred, base64 is accepted. */
export const Media = z.union([z.string(), z.object({ url: z.string() })], 'must be base64 text or { "url": … }')

/** §8.4.2 and §8.5.4: the handle by which agents refer to a piece of content, and what it shows. */
const handle = { content_id: z.optional(z.string()), description: z.optional(z.string()), display_hint: z.optional(z.string()) }

/** §8.2: the names are open. */
export const AudioFormat = z.string()

/** §5.8: low, high or auto; open, as it is a hint and minor versions may add to it (§14.3). */
export const ImageDetail = z.string()

/** Text that holds JSON. */
export const JsonText = z.string('must be a string of JSON text')

/** `refusal` is ours: the agent declines. Clients that do not know it show the text. */
export const TextContent = z.object({ type: z.literal('text'), text: z.string(), refusal: z.optional(z.boolean()) })
export const ImageContent = z.object({
  type: z.literal('image'),
  image: Media,
  format: z.optional(z.string()),
  detail: z.optional(ImageDetail),
  alt_text: z.optional(z.string()),
  ...handle,
})
export const AudioContent = z.object({
  type: z.literal('audio'),
  audio: Media,
  format: z.optional(AudioFormat),
  duration_ms: z.optional(z.number()),
  transcript: z.optional(z.string()),
  ...handle,
})
export const VideoContent = z.object({
  type: z.literal('video'),
  video: Media,
  format: z.optional(z.string()),
  duration_ms: z.optional(z.number()),
  thumbnail: z.optional(z.string()),
  ...handle,
})
export const FileContent = z.object({
  type: z.literal('file'),
  file: Media,
  filename: z.string(),
  mime_type: z.string(),
  size_bytes: z.optional(z.number()),
  ...handle,
})

/** A call of a tool; `arguments` is JSON text. */
export const ToolCall = z.object({ id: z.string(), name: z.string(), arguments: JsonText })
export type ToolCall = z.infer<typeof ToolCall>
export const ToolCallContent = z.object({ type: z.literal('tool_call'), tool_call: ToolCall })

/** What a tool gave back; `result` is JSON text, media comes beside it. */
export const ToolResult = z.object({
  call_id: z.string(),
  result: JsonText,
  status: z.optional(z.enum(['completed', 'failed'])),
  is_error: z.optional(z.boolean()),
  get content_items() {
    return z.optional(list(ContentItem, limits.list))
  },
  data: z.optional(z.unknown()),
})
export type ToolResult = z.infer<typeof ToolResult>
export const ToolResultContent = z.object({ type: z.literal('tool_result'), tool_result: ToolResult })

/** Reasoning kept in its place among text and tools (§6.13). */
export const ThinkingContent = z.object({
  type: z.literal('thinking'),
  thinking: z.string(),
  stage: z.optional(z.string()),
  redacted: z.optional(z.boolean()),
  signature: z.optional(z.string()),
})

export const ContentItem = z.discriminatedUnion('type', [
  TextContent,
  ImageContent,
  AudioContent,
  VideoContent,
  FileContent,
  ToolCallContent,
  ToolResultContent,
  ThinkingContent,
])
export type ContentItem = z.infer<typeof ContentItem>

export type MediaItem = Extract<ContentItem, { type: 'image' | 'audio' | 'video' | 'file' }>

export function isMedia(item: { readonly type: string }): item is MediaItem {
  return item.type === 'image' || item.type === 'audio' || item.type === 'video' || item.type === 'file'
}

const URL_LENGTH = 2048
const CONTENT_URL = /\/api\/content\/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})/i

/** §8.5.4: media always has a content id: its own, the one in an `/api/content/<uuid>` URL, or a new one. */
export function withContentId<T extends ContentItem>(item: T, newId: () => string): T {
  if (!isMedia(item) || item.content_id !== undefined) return item
  const source = item.type === 'image' ? item.image : item.type === 'audio' ? item.audio : item.type === 'video' ? item.video : item.file
  // A string may be a URL too (§5.8); base64 is not searched to its end.
  const inUrl = CONTENT_URL.exec(typeof source === 'string' ? source.slice(0, URL_LENGTH) : source.url)?.[1]
  return { ...item, content_id: inUrl ?? newId() }
}
