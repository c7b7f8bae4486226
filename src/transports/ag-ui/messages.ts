import type { ContentItem, ToolCall } from '../../protocol/content.ts'
import { textOf, type Message } from '../../protocol/message.ts'
import { mediaItem } from '../../wire/ag-ui/messages.ts'
import { invalid } from '../../wire/parse.ts'
import type { Part, WireMessage } from './schema.ts'

type Assistant = Extract<WireMessage, { role: 'assistant' }>

/**
 * Turns a client's messages into a conversation that may continue `before`. Throws if a tool result answers a call that nobody made,
 * or one in `before` that already has its result: the client must not replace that.
 */
export function toMessages(given: readonly WireMessage[], before: readonly Message[] = []): Message[] {
  const calls = new Set(before.flatMap(({ tool_calls = [] }) => tool_calls.map(({ id }) => id)))
  for (const { tool_call_id: id } of before) if (id !== undefined) calls.delete(id)
  const messages: Message[] = []
  /** Thoughts for the next message of the assistant. */
  let thoughts: ContentItem[] = []
  // Pages may add a decision as the result of the call it concerns: only the last result, the real one, counts.
  const results = new Map(given.map((message) => [message.role === 'tool' ? message.toolCallId : message.id, message]))
  for (const [index, message] of given.entries()) {
    const param = `messages[${index}]`
    if (message.role === 'activity' || (message.role === 'tool' && results.get(message.toolCallId) !== message)) continue
    if (message.role === 'reasoning') {
      thoughts.push(thought(message, param))
      continue
    }
    if (message.role !== 'assistant') {
      if (message.role === 'tool' && !calls.has(message.toolCallId)) throw noCall(message.toolCallId, `${param}.toolCallId`)
      // An answer that stopped after its thoughts, and not the beginning of the next one. Between a call and its result nothing may stand.
      if (message.role !== 'tool' && thoughts.length > 0) messages.push(thoughtsAlone(thoughts.splice(0)))
      messages.push(said(message, param))
      continue
    }
    const made = callsOf(message)
    for (const { id } of made) calls.add(id)
    const items = [...thoughts, ...sealed(itemsOf(message.content ?? '', param), message.encryptedValue), ...made.map(callItem)]
    thoughts = []
    messages.push({ role: 'assistant', content: textOf(items), content_items: items, ...(made.length > 0 && { tool_calls: made }) })
  }
  if (thoughts.length > 0) messages.push(thoughtsAlone(thoughts))
  return messages
}

function thoughtsAlone(thoughts: ContentItem[]): Message {
  return { role: 'assistant', content: '', content_items: thoughts }
}

export function noCall(id: string, param: string): Error {
  return invalid(`"${param}" answers the call "${id}", which nobody made`, param, 'unknown_tool_call')
}

type Said = Exclude<WireMessage, { role: 'assistant' | 'reasoning' | 'activity' }>

export function said(message: Said, param: string): Message {
  const { role, content, name } = message
  const text = typeof content === 'string' ? { content } : withItems(itemsOf(content, param))
  const named = name == null ? {} : { name }
  if (role !== 'tool') return { role: role === 'user' ? 'user' : 'system', ...text, ...named }
  const failed = message.error != null && { is_error: true, ...(text.content === '' && { content: message.error }) }
  return { role, tool_call_id: message.toolCallId, ...text, ...failed }
}

function withItems(items: ContentItem[]): { content: string; content_items?: ContentItem[] } {
  const content = textOf(items)
  return items.length === 1 && items[0]?.type === 'text' ? { content } : { content, content_items: items }
}

function callsOf({ toolCalls }: Assistant): ToolCall[] {
  return (toolCalls ?? []).map(({ id, function: { name, arguments: args }, encryptedValue }) => ({
    id,
    name,
    arguments: args,
    ...(encryptedValue != null && { encrypted_value: encryptedValue }),
  }))
}

/** The encrypted value of a message stays with its last text. */
function sealed(items: readonly ContentItem[], value: string | null | undefined): ContentItem[] {
  if (value == null) return [...items]
  const index = items.findLastIndex(({ type }) => type === 'text')
  const text = items[index] ?? { type: 'text', text: '' }
  return items.toSpliced(index < 0 ? 0 : index, index < 0 ? 0 : 1, { ...text, encrypted_value: value } as ContentItem)
}

function callItem(tool_call: ToolCall): ContentItem {
  return { type: 'tool_call', tool_call }
}

function thought({ content, encryptedValue }: Extract<WireMessage, { role: 'reasoning' }>, param: string): ContentItem {
  const thinking = textOf(itemsOf(content ?? '', param))
  return { type: 'thinking', thinking, ...(encryptedValue != null && { signature: encryptedValue }) }
}

function itemsOf(content: string | readonly Part[], param: string): ContentItem[] {
  if (typeof content === 'string') return content === '' ? [] : [{ type: 'text', text: content }]
  return content.map((part, index) => itemOf(part, `${param}.content[${index}]`))
}

/** Reads both spellings: parts by their kind, and `binary` of 0.0.x. */
function itemOf(part: Part, param: string): ContentItem {
  if (part.type === 'text') return { type: 'text', text: part.text }
  const source = part.type === 'binary' ? binarySource(part) : part.source
  if (source === undefined || source.type === 'file') {
    throw invalid(`"${param}" must bring its data or a public URL: files of other services cannot be fetched here`, param)
  }
  const filename = part.type === 'binary' ? part.filename : undefined
  return mediaItem(part.type, source, { mimeType: source.mimeType ?? undefined, filename: filename ?? undefined })
}

function binarySource({ data, url, mimeType }: Extract<Part, { type: 'binary' }>) {
  if (data != null) return { type: 'data' as const, value: data, mimeType }
  return url == null ? undefined : { type: 'url' as const, value: url, mimeType }
}
