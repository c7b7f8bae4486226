import { jsonIn } from '../../protocol/json.ts'
import type { ContentItem, ToolCall } from '../../protocol/content.ts'
import type { Message } from '../../protocol/message.ts'
import { fileDataUrl, fileText, imageUrl, inputAudio, note, publicUrl } from '../../wire/media-parts.ts'
import { toSteps, type ResultStep, type Step } from '../../wire/steps.ts'
import type { InputKind, ReasoningField } from './options.ts'
import { detailsIn } from './reasoning-details.ts'

export interface MessageOptions {
  readonly instructions?: string | undefined
  readonly input: ReadonlySet<InputKind>
  readonly reasoningField: ReasoningField | undefined
  /** Messages with calls get the field even without a thought. */
  readonly emptyReasoning: boolean
}

type Part = Readonly<Record<string, unknown>> & { readonly type: string }
type ChatMessage = Readonly<Record<string, unknown>>

/** Names of participants that the API accepts. */
const NAME = /^[^\s<|\\/>]{1,64}$/

/** The conversation in the form of Chat Completions. */
export function toChatMessages(messages: readonly Message[], options: MessageOptions): ChatMessage[] {
  const out: ChatMessage[] = []
  const steps = toSteps(messages)
  // Many chat templates allow only one system message, at the beginning.
  const first = steps.findIndex(({ kind }) => kind !== 'system')
  const leading = steps.slice(0, first < 0 ? steps.length : first)
  const system = [options.instructions ?? '', ...leading.map((step) => (step.kind === 'system' ? step.text : ''))].filter(
    (text) => text !== '',
  )
  if (system.length > 0) out.push({ role: 'system', content: system.join('\n\n') })
  let beside: Part[] = []
  for (const step of steps.slice(leading.length)) {
    // Results must come together, right after their calls.
    if (step.kind !== 'result' && beside.length > 0) {
      out.push({ role: 'user', content: beside })
      beside = []
    }
    out.push(...toMessage(step, options))
    if (step.kind === 'result') beside.push(...besideResult(step, options))
  }
  if (beside.length > 0) out.push({ role: 'user', content: beside })
  return out
}

function toMessage(step: Step, options: MessageOptions): ChatMessage[] {
  switch (step.kind) {
    case 'system':
      return [{ role: 'system', content: step.text }]
    case 'user': {
      const named = step.name !== undefined && NAME.test(step.name) && { name: step.name }
      return [{ role: 'user', content: content(step.items.flatMap((item) => toPart(item, options.input))), ...named }]
    }
    case 'assistant':
      return assistant(step, options)
    case 'result':
      return [{ role: 'tool', tool_call_id: step.callId, content: step.text }]
  }
}

/** Text is sent as a plain string, because not every server understands parts. */
function content(parts: readonly Part[]): string | readonly Part[] {
  return parts.every(({ type }) => type === 'text') ? parts.map((part) => String(part['text'])).join('\n\n') : parts
}

function assistant(
  { items, calls }: Extract<Step, { kind: 'assistant' }>,
  { reasoningField, emptyReasoning }: MessageOptions,
): ChatMessage[] {
  let text = ''
  let thinking = ''
  let refusal = ''
  for (const item of items) {
    if (item.type === 'text' && item.refusal) refusal += item.text
    else if (item.type === 'text') text += item.text
    else if (item.type === 'thinking') thinking += item.thinking
    else if (item.type !== 'tool_call' && item.type !== 'tool_result') text += (text === '' ? '' : '\n') + note(item)
  }
  const said = text + refusal
  if (said === '' && calls.length === 0) return []
  const details = detailsIn(items)
  // DeepSeek refuses a message with calls that lacks the field, even if there was no thought. Other messages do not need it.
  const wanted = calls.length > 0 && details === undefined && (thinking !== '' || emptyReasoning)
  const thought = wanted && reasoningField !== undefined && { [reasoningField]: thinking }
  return [
    {
      role: 'assistant',
      content: said === '' ? null : said,
      ...thought,
      ...(details && { reasoning_details: details }),
      ...(calls.length > 0 && { tool_calls: calls.map(toCall) }),
    },
  ]
}

function toCall({ id, name, arguments: args }: ToolCall): object {
  return { id, type: 'function', function: { name, arguments: asJson(args) } }
}

/** Some servers parse the arguments of earlier calls. One mistake of a model must not fail every request after it. */
function asJson(args: string): string {
  if (args.trim() === '') return '{}'
  return jsonIn(args) === undefined ? JSON.stringify({ invalid_json: args }) : args
}

/** A result can only be text. Media beside it goes into a message of the user. */
function besideResult({ callId, items }: ResultStep, { input }: MessageOptions): Part[] {
  const parts = items.flatMap((item) => toPart(item, input))
  return parts.length === 0 ? [] : [{ type: 'text', text: `Beside the result of the tool call ${callId}:` }, ...parts]
}

function toPart(item: ContentItem, input: ReadonlySet<InputKind>): Part[] {
  switch (item.type) {
    case 'text':
      return item.text === '' ? [] : [{ type: 'text', text: item.text }]
    case 'image': {
      const url = input.has('image') ? imageUrl(item) : undefined
      if (url === undefined || (!url.startsWith('data:') && !input.has('image_url'))) return [{ type: 'text', text: note(item) }]
      return [{ type: 'image_url', image_url: { url, ...(item.detail !== undefined && { detail: item.detail }) } }]
    }
    case 'audio': {
      const audio = input.has('audio') ? inputAudio(item) : undefined
      return [audio ? { type: 'input_audio', input_audio: audio } : { type: 'text', text: note(item) }]
    }
    case 'file': {
      const text = input.has('text_file') ? undefined : fileText(item)
      if (text !== undefined) return [{ type: 'text', text }]
      const data = input.has('file') ? (fileDataUrl(item) ?? publicUrl(item.file)) : undefined
      if (data === undefined || !data.startsWith('data:')) return [{ type: 'text', text: note(item) }]
      return [{ type: 'file', file: { filename: item.filename, file_data: data } }]
    }
    case 'video':
      return [{ type: 'text', text: note(item) }]
    case 'tool_call':
    case 'tool_result':
    case 'thinking':
      return []
  }
}
