import type { ContentItem, ToolCall } from '../../protocol/content.ts'
import { isRecord, jsonIn } from '../../protocol/json.ts'
import type { Message } from '../../protocol/message.ts'
import { mediaSource } from '../../wire/media-source.ts'
import { fileText, note } from '../../wire/media-parts.ts'
import { toSteps, type ResultStep } from '../../wire/steps.ts'

/** Messages API, content blocks. */
export type Block = { readonly type: string; readonly [field: string]: unknown }

export interface Speech {
  readonly role: 'user' | 'assistant'
  readonly content: Block[]
}

const BEGIN = '(The conversation begins.)'

/** The conversation in two roles. Results belong to the user, and come right after the calls that they answer. */
export function toSpeeches(messages: readonly Message[]): { system: string[]; speeches: Speech[] } {
  const system: string[] = []
  const speeches: Speech[] = []
  const say = (role: Speech['role'], content: readonly Block[]): void => {
    const last = speeches.at(-1)
    if (last?.role === role) last.content.push(...content)
    else if (content.length > 0) speeches.push({ role, content: [...content] })
  }
  for (const step of toSteps(messages)) {
    if (step.kind === 'system') system.push(step.text)
    if (step.kind === 'user') say('user', step.items.flatMap(shown))
    if (step.kind === 'assistant') say('assistant', step.items.flatMap(said))
    if (step.kind === 'result') say('user', [toolResult(step)])
  }
  // The API wants the user to speak first, even if the agent greets.
  if (speeches[0]?.role !== 'user') speeches.unshift({ role: 'user', content: [textBlock(BEGIN)] })
  return { system, speeches }
}

/** Content that the model sees. */
function shown(item: ContentItem): Block[] {
  switch (item.type) {
    case 'text':
      return text(item.text)
    case 'image':
    case 'file':
      return [media(item) ?? textBlock(note(item))]
    case 'audio':
    case 'video':
      return [textBlock(note(item))]
    default:
      return []
  }
}

/** Content that the model said. The API takes no media here, so it is named in words. */
function said(item: ContentItem): Block[] {
  switch (item.type) {
    case 'tool_call':
      return [toolUse(item.tool_call)]
    case 'thinking':
      return thought(item)
    case 'text':
      return text(item.text)
    case 'tool_result':
      return []
    default:
      return [textBlock(note(item))]
  }
}

/**
 * A thought goes back with its signature, or not at all: the API refuses a thought without one, and one that another vendor signed
 * before the model changed. Anthropic's signatures are plain base64; those of other vendors carry a mark.
 */
function thought({ thinking, signature, redacted }: Extract<ContentItem, { type: 'thinking' }>): Block[] {
  if (signature === undefined || !/^[\w+/=-]+$/.test(signature)) return []
  return [redacted ? { type: 'redacted_thinking', data: signature } : { type: 'thinking', thinking, signature }]
}

function toolUse({ id, name, arguments: args }: ToolCall): Block {
  return { type: 'tool_use', id: callId(id), name, input: inputOf(args) }
}

/** The API refuses some characters in ids of other vendors. A call and its result change alike. */
function callId(id: string): string {
  return id.replaceAll(/[^\w-]/g, '_')
}

/** Arguments that are not a JSON object are shown to the model as the mistake that they are. */
function inputOf(args: string): Record<string, unknown> {
  const value = jsonIn(args === '' ? '{}' : args)
  return isRecord(value) ? value : { invalid_arguments: args }
}

function toolResult({ callId: id, text: result, items, isError }: ResultStep): Block {
  const content = [...text(result), ...items.flatMap(shown)]
  return { type: 'tool_result', tool_use_id: callId(id), ...(content.length > 0 && { content }), ...(isError && { is_error: true }) }
}

function media(item: Extract<ContentItem, { type: 'image' | 'file' }>): Block | undefined {
  const source = mediaSource(item)
  const plain = item.type === 'file' ? fileText(item) : undefined
  if (plain !== undefined) return textBlock(plain)
  if (!source) return undefined
  const where = 'url' in source ? { type: 'url', url: source.url } : { type: 'base64', media_type: source.mime, data: source.data }
  if (/^image\/(jpeg|png|gif|webp)$/.test(source.mime)) return { type: 'image', source: where }
  if (source.mime !== 'application/pdf') return undefined
  return { type: 'document', source: where, ...(item.type === 'file' && { title: item.filename }) }
}

/** The API refuses an empty text. */
function text(value: string): Block[] {
  return value.trim() === '' ? [] : [textBlock(value)]
}

function textBlock(value: string): Block {
  return { type: 'text', text: value }
}
