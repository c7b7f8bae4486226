import type { ContentItem } from '../../protocol/content.ts'
import { isRecord } from '../../protocol/json.ts'
import type { Message } from '../../protocol/message.ts'
import { mediaItem, type WireMessage } from '../../wire/ag-ui/messages.ts'

/** What the other side calls the conversation. */
export function toMessages(messages: readonly WireMessage[]): Message[] {
  return messages.flatMap(({ role, content, toolCalls = [], toolCallId = '' }): Message[] => {
    const text = textIn(content)
    const media = mediaIn(content)
    const items = media.length > 0 && { content_items: [...(text === '' ? [] : [{ type: 'text' as const, text }]), ...media] }
    switch (role) {
      case 'tool':
        return [{ role, tool_call_id: toolCallId, content: text, ...items }]
      case 'user':
      case 'system':
        return [{ role, content: text, ...items }]
      case 'developer':
        return [{ role: 'system', content: text }]
      case 'assistant': {
        const calls = toolCalls.flatMap((call) => callOf(call) ?? [])
        return [{ role, content: text, ...(calls.length > 0 && { tool_calls: calls }) }]
      }
      default:
        return []
    }
  })
}

export function textIn(content: unknown): string {
  if (typeof content === 'string') return content
  return partsIn(content).reduce((all, { text }) => (typeof text === 'string' ? all + text : all), '')
}

function mediaIn(content: unknown): ContentItem[] {
  return partsIn(content).flatMap(({ type, source }) => {
    if (typeof type !== 'string' || !isRecord(source) || typeof source['value'] !== 'string') return []
    const mimeType = typeof source['mimeType'] === 'string' ? source['mimeType'] : undefined
    return [mediaItem(type, { type: source['type'] === 'data' ? 'data' : 'url', value: source['value'] }, { mimeType })]
  })
}

function callOf(call: unknown): NonNullable<Message['tool_calls']>[number] | undefined {
  const { id, function: made } = isRecord(call) ? call : {}
  const { name, arguments: args } = isRecord(made) ? made : {}
  return typeof id === 'string' && typeof name === 'string' && typeof args === 'string' ? { id, name, arguments: args } : undefined
}

function partsIn(content: unknown): Record<string, unknown>[] {
  return Array.isArray(content) ? content.filter(isRecord) : []
}
