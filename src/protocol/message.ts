import * as z from 'zod/mini'
import { ContentItem, ToolCall } from './content.ts'
import { list } from './json.ts'
import { limits } from './limits.ts'

/** One message of a conversation: UAMP events §8.5. If both are set, `content_items` is the whole, and `content` its text. */
export const Message = z.object({
  role: z.enum(['system', 'user', 'assistant', 'tool']),
  content: z.optional(z.string()),
  content_items: z.optional(list(ContentItem, limits.list)),
  name: z.optional(z.string()),
  tool_call_id: z.optional(z.string()),
  tool_calls: z.optional(list(ToolCall, limits.tools)),
  /** Ours, for a tool message: its text says why the tool failed. */
  is_error: z.optional(z.boolean()),
})
export type Message = z.infer<typeof Message>

/** The text of content items, as `content` carries it. */
export function textOf(items: readonly ContentItem[]): string {
  let text = ''
  for (const item of items) if (item.type === 'text') text += item.text
  return text
}

/** The text of a message, from its items if it has any. */
export function plainText({ content, content_items }: Message): string {
  return content_items ? textOf(content_items) : (content ?? '')
}

/** The items of a message, or its text as the only item. */
export function itemsOf({ content, content_items }: Message): readonly ContentItem[] {
  return content_items ?? [{ type: 'text', text: content ?? '' }]
}
