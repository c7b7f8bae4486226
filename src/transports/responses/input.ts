import type { Questions } from '../../core/ports/agent.ts'
import type { ContentItem } from '../../protocol/content.ts'
import { textOf, type Message } from '../../protocol/message.ts'
import { audioItem, fileItem, imageItem } from '../../wire/openai/media.ts'
import { invalid } from '../../wire/parse.ts'
import { placeOf } from './ids.ts'
import type { InputItem, Part } from './schema.ts'

export type Given = Questions[keyof Questions]

/** The input of a request as messages of a conversation. References are resolved before. */
export function toMessages(input: string | readonly InputItem[]): Message[] {
  if (typeof input === 'string') return [{ role: 'user', content: input }]
  const conversation = new Conversation()
  for (const [index, item] of input.entries()) conversation.add(item, `input[${index}]`)
  return conversation.end()
}

/** What an assistant thought, said and called in a row is one message, as it was when it said it. */
class Conversation {
  readonly #messages: Message[] = []
  #said: ContentItem[] = []

  add(item: InputItem, param: string): void {
    switch (item.type) {
      case undefined:
      case 'message':
        return this.#message(item, param)
      case 'function_call':
        this.#said.push({ type: 'tool_call', tool_call: { id: item.call_id, name: item.name, arguments: item.arguments } })
        return
      case 'function_call_output':
        return this.#push({ role: 'tool', tool_call_id: item.call_id, ...outputOf(item.output, `${param}.output`) })
      case 'reasoning':
        this.#said.push(thought(item))
        return
      case 'mcp_call':
        this.#said.push({ type: 'tool_call', tool_call: { id: item.id, name: item.name, arguments: item.arguments } })
        return this.#push({ role: 'tool', tool_call_id: item.id, content: item.output ?? failureOf(item.error) })
      case 'image_generation_call':
        this.#said.push(...imageOf(item, param))
        return
      // Asked and answered: what came of it follows. One that waits is answered before it comes to this.
      case 'mcp_approval_request':
      case 'mcp_approval_response':
        return
      case 'item_reference':
        throw notFound(item.id, `${param}.id`)
    }
  }

  end(): Message[] {
    this.#flush()
    return this.#messages
  }

  #message(item: Extract<InputItem, { role: string }>, param: string): void {
    const { role, content, uamp } = item
    if (role !== 'assistant') {
      const said = typeof content === 'string' ? { content } : withItems(itemsOf(content, `${param}.content`))
      return this.#push({ role: role === 'user' ? 'user' : 'system', ...said })
    }
    const media = uamp?.content_items ?? []
    // The text beside media is only what can be read of it.
    if (media.length > 0) this.#said.push(...media)
    else if (typeof content === 'string') this.#said.push({ type: 'text', text: content })
    else this.#said.push(...itemsOf(content, `${param}.content`))
  }

  #push(message: Message): void {
    this.#flush()
    this.#messages.push(message)
  }

  #flush(): void {
    const said = this.#said
    if (said.length === 0) return
    this.#said = []
    const calls = said.flatMap((item) => (item.type === 'tool_call' ? [item.tool_call] : []))
    this.#messages.push({ role: 'assistant', ...withItems(said), ...(calls.length > 0 && { tool_calls: calls }) })
  }
}

/** The item as an answer to a question, if it is one. */
export function toAnswer(item: InputItem, eventId: string, param: string): Given | undefined {
  if (item.type === 'function_call_output') {
    const { content, content_items } = outputOf(item.output, `${param}.output`)
    const result = { type: 'tool.result', event_id: eventId, call_id: item.call_id, result: content ?? '' } as const
    return content_items ? { ...result, content_items } : result
  }
  if (item.type !== 'mcp_approval_response') return undefined
  const { place: approval_id = item.approval_request_id } = placeOf(item.approval_request_id) ?? {}
  const reason = item.reason == null ? {} : { reason: item.reason }
  return { type: 'x.approval.response', event_id: eventId, approval_id, approved: item.approve, ...reason }
}

export function notFound(id: string, param: string): Error {
  return invalid(`Item with id '${id}' not found. Items are kept only where "store" is true.`, param, 'item_not_found')
}

function outputOf(output: string | readonly Part[], param: string): { content: string; content_items?: ContentItem[] } {
  if (typeof output === 'string') return { content: output }
  const items = itemsOf(output, param)
  return items.every(({ type }) => type === 'text') ? { content: textOf(items) } : { content: textOf(items), content_items: items }
}

function withItems(items: ContentItem[]): Pick<Message, 'content' | 'content_items'> {
  return { content: textOf(items), content_items: items }
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
