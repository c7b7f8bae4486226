/** Content items: UAMP events §8.4. */
import * as z from 'zod/mini'
import { list } from './json.ts'
import { limits } from './limits.ts'

/** §8.4.1: a URL is preferred, base64 is accepted. */
export const Media = z.union([z.string(), z.object({ url: z.string() })], 'must be base64 text or { "url": … }')

/** §8.4.2 and §8.5.4: the handle by which agents refer to content, and a description of it. */
const handle = { content_id: z.optional(z.string()), description: z.optional(z.string()), display_hint: z.optional(z.string()) }

/** §8.2: the names are open. */
export const AudioFormat = z.string()

/** §5.8: low, high or auto. Open, because it is a hint, and minor versions may add values (§14.3). */
export const ImageDetail = z.string()

/** A text that contains JSON. */
export const JsonText = z.string('must be a string of JSON text')

const text = z.optional(z.string())
const number = z.optional(z.number())
const flag = z.optional(z.boolean())

/** Ours: what a client says of its media. Agents may read it, and clients that do not know a field ignore it. */
export const measures = {
  filename: text,
  size_bytes: number,
  width: number,
  height: number,
  duration_ms: number,
  sample_rate: number,
  channels: number,
}

/** One kind of content item. */
function item<const T extends string, F extends z.core.$ZodLooseShape>(type: T, fields: F) {
  return z.object({ type: z.literal(type), ...fields })
}

/** Ours: encrypted reasoning that belongs to a text or a call. It goes back to whoever made it, and nobody else reads it. */
const encrypted = { encrypted_value: text }

/** `refusal` is ours: the agent declines. Clients that do not know the field show the text. */
export const TextContent = item('text', { text: z.string(), refusal: flag, ...encrypted })
export const ImageContent = item('image', {
  image: Media,
  format: text,
  detail: z.optional(ImageDetail),
  alt_text: text,
  ...measures,
  ...handle,
})
export const AudioContent = item('audio', {
  audio: Media,
  format: z.optional(AudioFormat),
  transcript: text,
  ...measures,
  ...handle,
})
export const VideoContent = item('video', { video: Media, format: text, thumbnail: text, ...measures, ...handle })
export const FileContent = item('file', { file: Media, filename: z.string(), mime_type: z.string(), size_bytes: number, ...handle })

/** A call of a tool; `arguments` is JSON text. */
export const ToolCall = z.object({ id: z.string(), name: z.string(), arguments: JsonText, ...encrypted })
export type ToolCall = z.infer<typeof ToolCall>
export const ToolCallContent = item('tool_call', { tool_call: ToolCall })

/** The result of a tool. `result` is JSON text; media is in `content_items`. */
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
export const ToolResultContent = item('tool_result', { tool_result: ToolResult })

/** Reasoning kept in its place among text and tools (§6.13). */
export const ThinkingContent = item('thinking', { thinking: z.string(), stage: text, redacted: flag, signature: text })

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

const CONTENT_LINK =
  /(?:https?:\/\/[^\s"'<>()]{0,256}?)?\/api\/content\/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?:\?[^\s"'<>(),]*)?/gi

/** §8.5.4: a text without content URLs. Each becomes the handle of its content, by which a model can still name it. */
export function withoutContentUrls(text: string): string {
  return text.includes('/api/content/') ? text.replace(CONTENT_LINK, '[content $1]') : text
}

/** §8.5.4: gives media a content id: its own, the one in an `/api/content/<uuid>` URL, or a new one. Also to media in a tool's result. */
export function withContentId<T extends ContentItem>(item: T, newId: () => string): T {
  if (item.type === 'tool_result') return withIdsInside(item, newId) as T
  if (!isMedia(item) || item.content_id !== undefined) return item
  const source = item.type === 'image' ? item.image : item.type === 'audio' ? item.audio : item.type === 'video' ? item.video : item.file
  // A string may be a URL, too (§5.8). Long base64 is not searched to its end.
  const inUrl = CONTENT_URL.exec(typeof source === 'string' ? source.slice(0, URL_LENGTH) : source.url)?.[1]
  return { ...item, content_id: inUrl ?? newId() }
}

/** The same for a list. Returns the same list if nothing changes. */
export function withIds<T extends ContentItem>(items: readonly T[], newId: () => string): T[] {
  const named = items.map((item) => withContentId(item, newId))
  return named.every((item, index) => item === items[index]) ? (items as T[]) : named
}

function withIdsInside(item: Extract<ContentItem, { type: 'tool_result' }>, newId: () => string): ContentItem {
  const { content_items: inside } = item.tool_result
  const named = inside && withIds(inside, newId)
  return named === inside ? item : { ...item, tool_result: { ...item.tool_result, content_items: named } }
}
