import type { ContentItem } from '../../protocol/content.ts'
import { textOf, type Message } from '../../protocol/message.ts'

/** The output of a response as messages of the conversation: what the assistant said and called, and each tool's result. */
export function outputMessages(output: readonly ContentItem[]): Message[] {
  const messages: Message[] = []
  let said: ContentItem[] = []
  const flush = (): void => {
    if (said.length === 0) return
    const calls = said.flatMap((item) => (item.type === 'tool_call' ? [item.tool_call] : []))
    messages.push({ role: 'assistant', content: textOf(said), content_items: [...said], ...(calls.length > 0 && { tool_calls: calls }) })
    said = []
  }
  for (const item of output) {
    if (item.type === 'tool_result') {
      flush()
      const { call_id, result, content_items, is_error } = item.tool_result
      messages.push({
        role: 'tool',
        tool_call_id: call_id,
        content: result,
        ...(content_items && { content_items }),
        ...(is_error && { is_error }),
      })
    } else {
      said.push(item)
    }
  }
  flush()
  return messages
}
