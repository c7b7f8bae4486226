import * as z from 'zod/mini'
import { ContentItem, ToolCall } from './content.ts'
import { list, Slot } from './json.ts'
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
  /** Ours: what came in these slots of the inputs that the message is made of (§5.6, §14.3 rule 5). */
  context: z.optional(Slot),
  extensions: z.optional(Slot),
  metadata: z.optional(Slot),
})
export type Message = z.infer<typeof Message>

type Slots = { readonly [Name in 'context' | 'extensions' | 'metadata']?: Slot | undefined }

/** The slots of a message or an input, with those of a later one beside them: of two entries with one name the later one counts. */
export function slotsOf(later: Slots, earlier: Slots = {}): Slots {
  const { context, extensions, metadata } = later
  if (!context && !extensions && !metadata) return earlier
  return {
    ...earlier,
    ...(context && { context: { ...earlier.context, ...context } }),
    ...(extensions && { extensions: { ...earlier.extensions, ...extensions } }),
    ...(metadata && { metadata: { ...earlier.metadata, ...metadata } }),
  }
}

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
