import * as z from 'zod/mini'
import type { ContentItem } from '../../protocol/content.ts'
import { recordsIn } from '../../protocol/json.ts'
import type { Message } from '../../protocol/message.ts'
import { mediaItem, type WireMessage } from '../../wire/ag-ui/messages.ts'

const Media = z.object({ type: z.string(), source: z.object({ type: z.string(), value: z.string(), mimeType: z.nullish(z.string()) }) })
const Call = z.object({ id: z.string(), function: z.object({ name: z.string(), arguments: z.string() }) })

/** What the other side calls the conversation. */
export function toMessages(messages: readonly WireMessage[]): Message[] {
  return messages.flatMap(({ role, content, toolCalls, toolCallId = '' }): Message[] => {
    const said = contentIn(content)
    if (role === 'tool') return [{ role, tool_call_id: toolCallId, ...said }]
    if (role === 'user' || role === 'system') return [{ role, ...said }]
    if (role === 'developer') return [{ role: 'system', content: said.content }]
    if (role !== 'assistant') return []
    const calls = recordsIn(toolCalls).flatMap((call) => z.safeParse(Call, call).data ?? [])
    const made = calls.map(({ id, function: { name, arguments: args } }) => ({ id, name, arguments: args }))
    return [{ role, content: said.content, ...(made.length > 0 && { tool_calls: made }) }]
  })
}

/** The text of what somebody said, and the whole of it where there is more than text. */
export function contentIn(given: unknown): { content: string; content_items?: ContentItem[] } {
  const parts = typeof given === 'string' ? [{ text: given }] : recordsIn(given)
  const content = parts.reduce((all, { text }) => (typeof text === 'string' ? all + text : all), '')
  const media = parts.flatMap((part) => z.safeParse(Media, part).data ?? [])
  if (media.length === 0) return { content }
  const items = media.map(({ type, source }) => mediaItem(type, source, { mimeType: source.mimeType ?? undefined }))
  return { content, content_items: [...(content === '' ? [] : [{ type: 'text' as const, text: content }]), ...items] }
}
