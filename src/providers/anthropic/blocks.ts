import type { ContentItem, ToolCall } from '../../protocol/content.ts'
import { isRecord, parseJson } from '../../protocol/json.ts'
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

/** The conversation in two roles: results are the user's, and stand first after the calls they answer. */
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
  // The user has to speak first, also where the agent greets.
  if (speeches[0]?.role !== 'user') speeches.unshift({ role: 'user', content: [textBlock(BEGIN)] })
  return { system, speeches }
}

/** What the model is shown. */
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

/** What the model said itself. It cannot have shown pictures: media of an agent is named. */
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
 * Thoughts go back with their signature as they came, or not at all: one without it is refused, and so is another vendor's,
 * which after a change of models is in the same history. Those here are plain base64; what others keep is marked.
 */
function thought({ thinking, signature, redacted }: Extract<ContentItem, { type: 'thinking' }>): Block[] {
  if (signature === undefined || !/^[\w+/=-]+$/.test(signature)) return []
  return [redacted ? { type: 'redacted_thinking', data: signature } : { type: 'thinking', thinking, signature }]
}

function toolUse({ id, name, arguments: args }: ToolCall): Block {
  return { type: 'tool_use', id: callId(id), name, input: inputOf(args) }
}

/** Ids of other vendors may hold characters that are refused here; the call and its result change alike. */
function callId(id: string): string {
  return id.replaceAll(/[^\w-]/g, '_')
}

/** Arguments that were no JSON object are shown as the mistake that they were. */
function inputOf(args: string): Record<string, unknown> {
  try {
    const value: unknown = parseJson(args === '' ? '{}' : args)
    if (isRecord(value)) return value
  } catch {
    // Told below.
  }
  return { invalid_arguments: args }
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

/** An empty text is refused. */
function text(value: string): Block[] {
  return value.trim() === '' ? [] : [textBlock(value)]
}

function textBlock(value: string): Block {
  return { type: 'text', text: value }
}
