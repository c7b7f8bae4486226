import type { Questions } from '../../core/ports/agent.ts'
import { outputMessages } from '../../core/reading/output.ts'
import type { ContentItem, ToolResult } from '../../protocol/content.ts'
import { textOf, type Message } from '../../protocol/message.ts'
import { audioItem, fileItem, imageItem } from '../../wire/openai/media.ts'
import { invalid } from '../../wire/parse.ts'
import { placeOf } from './ids.ts'
import { summaryIn } from './summary.ts'
import type { InputItem, Part } from './schema.ts'

export type Given = Questions[keyof Questions]

/** The input of a request as messages of a conversation: what an assistant thought, said and called in a row is one message. */
export function toMessages(input: string | readonly InputItem[]): Message[] {
  if (typeof input === 'string') return [{ role: 'user', content: input }]
  const messages: Message[] = []
  let output: ContentItem[] = []
  for (const [index, item] of input.entries()) {
    const param = `input[${index}]`
    if (!('role' in item) || item.role === 'assistant') {
      output.push(...saidIn(item, param))
      continue
    }
    messages.push(...outputMessages(output))
    output = []
    const { content } = item
    const role = item.role === 'user' ? 'user' : 'system'
    if (typeof content === 'string') messages.push({ role, content })
    else {
      const items = itemsOf(content, `${param}.content`)
      messages.push({ role, content: textOf(items), content_items: items })
    }
  }
  return [...messages, ...outputMessages(output)]
}

/** What an assistant said, or what a tool gave back. References are resolved before. */
function saidIn(item: InputItem, param: string): ContentItem[] {
  switch (item.type) {
    case undefined:
    case 'message': {
      const media = item.uamp?.content_items ?? []
      // The text beside media is only what can be read of it.
      if (media.length > 0) return media
      return typeof item.content === 'string' ? [{ type: 'text', text: item.content }] : itemsOf(item.content, `${param}.content`)
    }
    case 'function_call':
      return [{ type: 'tool_call', tool_call: { id: item.call_id, name: item.name, arguments: item.arguments } }]
    case 'function_call_output':
      return [{ type: 'tool_result', tool_result: resultIn(item, param) }]
    case 'reasoning':
      return [thought(item)]
    case 'compaction':
      return [{ type: 'text', text: summaryIn(item.encrypted_content, `${param}.encrypted_content`) }]
    case 'mcp_call': {
      const { id, name, arguments: args, output, error } = item
      return [
        { type: 'tool_call', tool_call: { id, name, arguments: args } },
        { type: 'tool_result', tool_result: { call_id: id, result: output ?? failureOf(error) } },
      ]
    }
    case 'image_generation_call':
      return imageOf(item, param)
    // Its outcome follows. An approval that a run waits for was taken before.
    case 'mcp_approval_request':
    case 'mcp_approval_response':
      return []
    case 'item_reference':
      throw notFound(item.id, `${param}.id`)
  }
}

/** The item as an answer to a question, if it is one. */
export function toAnswer(item: InputItem, eventId: string, param: string): Given | undefined {
  if (item.type === 'function_call_output') {
    return { type: 'tool.result', event_id: eventId, ...resultIn(item, param) }
  }
  if (item.type !== 'mcp_approval_response') return undefined
  const { place: approval_id = item.approval_request_id } = placeOf(item.approval_request_id) ?? {}
  const reason = item.reason == null ? {} : { reason: item.reason }
  return { type: 'x.approval.response', event_id: eventId, approval_id, approved: item.approve, ...reason }
}

export function notFound(id: string, param: string): Error {
  return invalid(`Item with id '${id}' not found. Items are kept only where "store" is true.`, param, 'item_not_found')
}

function resultIn({ call_id, output }: Extract<InputItem, { type: 'function_call_output' }>, param: string): ToolResult {
  if (typeof output === 'string') return { call_id, result: output }
  const items = itemsOf(output, `${param}.output`)
  const result = { call_id, result: textOf(items) }
  return items.every(({ type }) => type === 'text') ? result : { ...result, content_items: items }
}

function itemsOf(parts: readonly Part[], param: string): ContentItem[] {
  return parts.map((part, index) => toItem(part, `${param}[${index}]`))
}

function toItem(part: Part, param: string): ContentItem {
  switch (part.type) {
    case 'input_text':
    case 'output_text':
      return { type: 'text', text: part.text }
    case 'refusal':
      return { type: 'text', text: part.refusal, refusal: true }
    case 'input_image':
      if (part.image_url == null) {
        if (part.file_id == null) throw invalid(`"${param}" must have "image_url"`, param, 'missing_required_parameter')
        throw invalid('Files cannot be uploaded here: send "image_url" instead of "file_id"', `${param}.file_id`, 'file_not_found')
      }
      return imageItem(part.image_url, { detail: part.detail ?? undefined, param: `${param}.image_url` })
    case 'input_file':
      return fileItem(part, param)
    case 'input_audio':
      return audioItem(part.input_audio, `${param}.input_audio.data`)
  }
}

function thought({ summary, content, encrypted_content }: Extract<InputItem, { type: 'reasoning' }>): ContentItem {
  const thinking = [...(content ?? []), ...(content?.length ? [] : (summary ?? []))].map(({ text }) => text).join('\n\n')
  return { type: 'thinking', thinking, ...(encrypted_content != null && { signature: encrypted_content }) }
}

function failureOf(error: unknown): string {
  return error === undefined || error === null ? '' : typeof error === 'string' ? error : JSON.stringify({ error })
}

function imageOf(item: Extract<InputItem, { type: 'image_generation_call' }>, param: string): ContentItem[] {
  const { result, output_format, uamp } = item
  const { url, ...handle } = uamp ?? {}
  if (result == null && url === undefined) return []
  if (result != null) imageItem(`data:image/${output_format ?? 'png'};base64,${result}`, { param: `${param}.result` })
  const format = output_format == null ? {} : { format: output_format }
  return [{ type: 'image', image: result ?? { url: url ?? '' }, ...format, ...handle }]
}
