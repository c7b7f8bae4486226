import type { ContentItem } from '../../protocol/content.ts'
import type { Message } from '../../protocol/message.ts'
import { fileDataUrl, imageUrl, inputAudio, note } from '../../wire/openai/media-parts.ts'
import { toSteps, type ResultStep, type Step } from '../../wire/openai/steps.ts'

type ChatMessage = Readonly<Record<string, unknown>>
type Part = Readonly<Record<string, unknown>> & { readonly type: string }

/** The conversation in Chat Completions' words, with nothing in it that a strict server refuses. */
export function toChatMessages(messages: readonly Message[], instructions: string | undefined): ChatMessage[] {
  const steps = toSteps(messages)
  const asked = steps.findLastIndex(({ kind }) => kind === 'user')
  const said: ChatMessage[] = instructions === undefined || instructions === '' ? [] : [{ role: 'system', content: instructions }]
  let beside: Part[] = []
  const flush = (): void => {
    if (beside.length > 0) said.push({ role: 'user', content: beside })
    beside = []
  }
  for (const [index, step] of steps.entries()) {
    if (step.kind === 'result') beside.push(...besideResult(step))
    // Results must stand together, right behind their calls.
    else flush()
    said.push(...toMessages(step, index > asked))
  }
  flush()
  return said
}

function toMessages(step: Step, ofThisTurn: boolean): ChatMessage[] {
  switch (step.kind) {
    case 'system':
      return [{ role: 'system', content: step.text }]
    case 'user':
      return [{ role: 'user', content: content(step.items), ...(step.name !== undefined && { name: step.name }) }]
    case 'assistant':
      return assistant(step, ofThisTurn)
    case 'result':
      return [{ role: 'tool', tool_call_id: step.callId, content: step.text }]
  }
}

/** Thoughts go back while tools are at work, when DeepSeek and its like want them; from earlier turns some refuse them. */
function assistant({ items, calls }: Extract<Step, { kind: 'assistant' }>, ofThisTurn: boolean): ChatMessage[] {
  let text = ''
  let refusal = ''
  let thinking = ''
  for (const item of items) {
    if (item.type === 'text' && item.refusal) refusal += item.text
    else if (item.type === 'text') text += item.text
    else if (item.type === 'thinking') thinking += item.thinking
    else if (item.type !== 'tool_call' && item.type !== 'tool_result') text += (text === '' ? '' : '\n') + note(item)
  }
  if (text === '' && refusal === '' && calls.length === 0) return []
  return [
    {
      role: 'assistant',
      content: text === '' ? null : text,
      ...(refusal !== '' && { refusal }),
      ...(ofThisTurn && calls.length > 0 && thinking !== '' && { reasoning_content: thinking }),
      ...(calls.length > 0 && {
        tool_calls: calls.map(({ id, name, arguments: args }) => ({ id, type: 'function', function: { name, arguments: args } })),
      }),
    },
  ]
}

/** A tool's message takes text alone: what came beside it is shown by the user's hand. */
function besideResult({ callId, items }: ResultStep): Part[] {
  const parts = items.flatMap(toPart)
  return parts.length === 0 ? [] : [{ type: 'text', text: `Beside the result of the tool call ${callId}:` }, ...parts]
}

/** Text alone is sent as such: not every server knows parts. */
function content(items: readonly ContentItem[]): string | readonly Part[] {
  const parts = items.flatMap(toPart)
  return parts.every(({ type }) => type === 'text') ? parts.map((part) => String(part['text'])).join('\n') : parts
}

function toPart(item: ContentItem): Part[] {
  switch (item.type) {
    case 'text':
      return [{ type: 'text', text: item.text }]
    case 'image': {
      const url = imageUrl(item)
      if (url === undefined) return [{ type: 'text', text: note(item) }]
      return [{ type: 'image_url', image_url: { url, ...(item.detail !== undefined && { detail: item.detail }) } }]
    }
    case 'audio': {
      const audio = inputAudio(item)
      return [audio ? { type: 'input_audio', input_audio: audio } : { type: 'text', text: note(item) }]
    }
    case 'file': {
      const file_data = fileDataUrl(item)
      return [file_data === undefined ? { type: 'text', text: note(item) } : { type: 'file', file: { filename: item.filename, file_data } }]
    }
    case 'video':
      return [{ type: 'text', text: note(item) }]
    default:
      return []
  }
}
