import type { ContentItem, ToolCall } from '../../protocol/content.ts'
import { textOf, type Message } from '../../protocol/message.ts'
import { audioItem, fileItem, imageItem } from '../../wire/openai/media.ts'
import { invalid } from '../../wire/parse.ts'
import type { ChatMessage, Part } from './schema.ts'

type Assistant = Extract<ChatMessage, { role: 'assistant' }>

/** The conversation in a request. Throws if a tool result answers a call that nobody made. */
export function toMessages(given: readonly ChatMessage[]): Message[] {
  const calls = new Set<string>()
  return given.map((message, index) => toMessage(message, `messages[${index}]`, calls))
}

function toMessage(message: ChatMessage, param: string, calls: Set<string>): Message {
  const name = message.name == null ? {} : { name: message.name }
  switch (message.role) {
    case 'system':
    case 'developer':
    case 'user':
      return { role: message.role === 'user' ? 'user' : 'system', ...content(message, param), ...name }
    case 'assistant':
      return { ...assistant(message, param, calls), ...name }
    case 'tool':
      if (!calls.has(message.tool_call_id)) {
        throw invalid(
          `"${param}" answers the call "${message.tool_call_id}", which no message before it made`,
          `${param}.tool_call_id`,
          'unknown_tool_call',
        )
      }
      return { role: 'tool', tool_call_id: message.tool_call_id, ...content(message, param), ...name }
    case 'function':
      if (!calls.has(message.name)) {
        throw invalid(`"${param}" answers the function "${message.name}", which no message before it called`, `${param}.name`)
      }
      return { role: 'tool', tool_call_id: message.name, ...content(message, param) }
  }
}

function assistant(message: Assistant, param: string, calls: Set<string>): Message {
  const made = callsOf(message)
  for (const [index, { id }] of made.entries()) {
    if (calls.has(id) && message.function_call == null) {
      throw invalid(`Two tool calls have the id "${id}"`, `${param}.tool_calls[${index}].id`, 'duplicate_tool_call')
    }
    calls.add(id)
  }
  const items = itemsOf(message, param)
  if (message.refusal != null) items.push({ type: 'text', text: message.refusal, refusal: true })
  if (message.reasoning_content != null && !items.some(({ type }) => type === 'thinking')) {
    items.unshift({ type: 'thinking', thinking: message.reasoning_content })
  }
  const known = new Set(items.flatMap((item) => (item.type === 'tool_call' ? [item.tool_call.id] : [])))
  for (const call of made) if (!known.has(call.id)) items.push({ type: 'tool_call', tool_call: call })
  const plain = items.every((item) => item.type === 'text' && item.refusal === undefined)
  return {
    role: 'assistant',
    content: textOf(items),
    ...(!plain && { content_items: items }),
    ...(made.length > 0 && { tool_calls: made }),
  }
}

/** The older `function_call` has no id: its result names the function instead. */
function callsOf({ tool_calls, function_call }: Assistant): ToolCall[] {
  const made = (tool_calls ?? []).map((call) => ({ id: call.id, name: call.function.name, arguments: call.function.arguments }))
  return function_call == null ? made : [...made, { id: function_call.name, name: function_call.name, arguments: function_call.arguments }]
}

function content(message: ChatMessage, param: string): Pick<Message, 'content' | 'content_items'> {
  if (typeof message.content === 'string' && message.content_items == null) return { content: message.content }
  const items = itemsOf(message, param)
  return { content: textOf(items), content_items: items }
}

/** `content_items` are complete, unless the client left out the text because `content` has it. */
function itemsOf({ content: given, content_items }: ChatMessage, param: string): ContentItem[] {
  const parts: ContentItem[] =
    typeof given === 'string'
      ? given === ''
        ? []
        : [{ type: 'text', text: given }]
      : (given ?? []).map((part, index) => toItem(part, `${param}.content[${index}]`))
  if (content_items == null) return parts
  const says = (items: readonly ContentItem[]) => items.some(({ type }) => type === 'text')
  return says(content_items) || !says(parts) ? [...content_items] : [...parts, ...content_items]
}

function toItem(part: Part, param: string): ContentItem {
  switch (part.type) {
    case 'text':
      return { type: 'text', text: part.text }
    case 'refusal':
      return { type: 'text', text: part.refusal, refusal: true }
    case 'image_url':
      return imageItem(part.image_url.url, { detail: part.image_url.detail ?? undefined, param: `${param}.image_url.url` })
    case 'input_audio':
      return audioItem(part.input_audio, `${param}.input_audio.data`)
    case 'file':
      return fileItem(part.file, `${param}.file`)
  }
}
