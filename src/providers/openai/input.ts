import type { ContentItem } from '../../protocol/content.ts'
import type { Message } from '../../protocol/message.ts'
import { fileDataUrl, fileText, imageUrl, note, publicUrl } from '../../wire/media-parts.ts'
import { toSteps, type ResultStep, type Step } from '../../wire/steps.ts'
import { fromSignature } from './reasoning.ts'

type InputItem = Readonly<Record<string, unknown>>
type Part = Readonly<Record<string, unknown>> & { readonly type: string }

/** The conversation as items of the Responses API. */
export function toInput(messages: readonly Message[], { reasoning }: { readonly reasoning: boolean }): InputItem[] {
  return toSteps(messages).flatMap((step) => toItems(step, reasoning))
}

function toItems(step: Step, reasoning: boolean): InputItem[] {
  switch (step.kind) {
    case 'system':
      return [{ role: 'developer', content: step.text }]
    case 'user': {
      const parts = step.items.flatMap(toPart)
      return parts.length === 0 ? [] : [{ role: 'user', content: parts }]
    }
    case 'assistant': {
      // The API refuses a thought without a consequence, as a cancel leaves one.
      const last = step.items.findLastIndex(({ type }) => type === 'text' || type === 'tool_call')
      return step.items.flatMap((item, index) => said(item, reasoning && index < last))
    }
    case 'result':
      return [{ type: 'function_call_output', call_id: step.callId, output: output(step) }]
  }
}

/** Keeps the order: a reasoning item must come right before its consequence. */
function said(item: ContentItem, reasoning: boolean): InputItem[] {
  switch (item.type) {
    case 'text':
      if (item.text === '') return []
      return [
        {
          type: 'message',
          role: 'assistant',
          content: [item.refusal ? { type: 'refusal', refusal: item.text } : { type: 'output_text', text: item.text }],
        },
      ]
    case 'thinking':
      return reasoning ? thought(item) : []
    case 'tool_call': {
      const { id, name, arguments: args } = item.tool_call
      return [{ type: 'function_call', call_id: id, name, arguments: args === '' ? '{}' : args }]
    }
    case 'tool_result':
      return []
    default:
      return [{ type: 'message', role: 'assistant', content: [{ type: 'output_text', text: note(item) }] }]
  }
}

/** Only thoughts that OpenAI encrypted can go back. */
function thought({ thinking, signature }: Extract<ContentItem, { type: 'thinking' }>): InputItem[] {
  const kept = signature === undefined ? undefined : fromSignature(signature)
  if (!kept) return []
  const summary = thinking === '' ? [] : [{ type: 'summary_text', text: thinking }]
  return [{ type: 'reasoning', ...(kept.id !== undefined && { id: kept.id }), summary, encrypted_content: kept.encrypted }]
}

function output({ text, items }: ResultStep): string | readonly Part[] {
  const beside = items.flatMap(toPart)
  if (beside.length === 0) return text
  return text === '' ? beside : [{ type: 'input_text', text }, ...beside]
}

function toPart(item: ContentItem): Part[] {
  switch (item.type) {
    case 'text':
      return item.text === '' ? [] : [{ type: 'input_text', text: item.text }]
    case 'image': {
      const url = imageUrl(item)
      if (url === undefined) return [named(item)]
      return [{ type: 'input_image', image_url: url, detail: item.detail ?? 'auto' }]
    }
    case 'file': {
      const text = fileText(item)
      if (text !== undefined) return [{ type: 'input_text', text }]
      const data = fileDataUrl(item)
      if (data !== undefined) return [{ type: 'input_file', filename: item.filename, file_data: data }]
      const url = publicUrl(item.file)
      return [url === undefined ? named(item) : { type: 'input_file', file_url: url }]
    }
    case 'audio':
    case 'video':
      return [named(item)]
    case 'tool_call':
    case 'tool_result':
    case 'thinking':
      return []
  }
}

function named(item: Parameters<typeof note>[0]): Part {
  return { type: 'input_text', text: note(item) }
}
