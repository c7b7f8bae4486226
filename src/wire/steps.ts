import type { ContentItem, ToolCall, ToolResult } from '../protocol/content.ts'
import { textOf, type Message } from '../protocol/message.ts'

/** A conversation as OpenAI's APIs want it: every call is followed by its one result, and every result has a call. */
export type Step =
  | { readonly kind: 'system'; readonly text: string }
  | { readonly kind: 'user'; readonly items: readonly ContentItem[]; readonly name?: string | undefined }
  | { readonly kind: 'assistant'; readonly items: readonly ContentItem[]; readonly calls: readonly ToolCall[] }
  | ResultStep

export interface ResultStep {
  readonly kind: 'result'
  readonly callId: string
  readonly text: string
  /** Content beside the text. */
  readonly items: readonly ContentItem[]
  /** For APIs that have a field for it. */
  readonly isError?: boolean
}

/** A cancelled turn leaves unanswered calls, and the APIs refuse a conversation with such a call. */
const UNANSWERED = 'This call was not carried out.'

export function toSteps(messages: readonly Message[]): Step[] {
  const steps = messages.flatMap(stepsOf)
  const results = new Map<string, ResultStep[]>()
  for (const step of steps) {
    if (step.kind !== 'result') continue
    const known = results.get(step.callId)
    if (known) known.push(step)
    else results.set(step.callId, [step])
  }
  return steps.flatMap((step): Step[] => {
    if (step.kind === 'result') return []
    if (step.kind !== 'assistant') return [step]
    // A later turn may use the same id again, so each call takes the first result that is left.
    return [step, ...step.calls.map(({ id }) => results.get(id)?.shift() ?? unanswered(id))]
  })
}

/** The ids of all calls in a conversation. */
export function callIds(messages: readonly Message[]): Set<string> {
  const ids = new Set<string>()
  for (const { tool_calls, content_items } of messages) {
    for (const { id } of tool_calls ?? []) ids.add(id)
    for (const item of content_items ?? []) if (item.type === 'tool_call') ids.add(item.tool_call.id)
  }
  return ids
}

function unanswered(callId: string): ResultStep {
  return { kind: 'result', callId, text: UNANSWERED, items: [], isError: true }
}

function stepsOf(message: Message): Step[] {
  switch (message.role) {
    case 'system':
      return [{ kind: 'system', text: message.content ?? textOf(message.content_items ?? []) }]
    case 'tool':
      return toolSteps(message)
    case 'user':
      return split(itemsOf(message), (items) => ({ kind: 'user', items, name: message.name }))
    case 'assistant': {
      const items = itemsOf(message)
      const known = new Set(items.flatMap((item) => (item.type === 'tool_call' ? [item.tool_call.id] : [])))
      for (const call of message.tool_calls ?? []) if (!known.has(call.id)) items.push({ type: 'tool_call', tool_call: call })
      return split(items, (said) => ({
        kind: 'assistant',
        items: said,
        calls: said.flatMap((item) => (item.type === 'tool_call' ? [item.tool_call] : [])),
      }))
    }
  }
}

/** Results among other items become steps of their own. */
function split(items: readonly ContentItem[], step: (items: ContentItem[]) => Step): Step[] {
  const steps: Step[] = []
  let said: ContentItem[] = []
  const flush = (): void => {
    if (said.length > 0) steps.push(step(said))
    said = []
  }
  for (const item of items) {
    if (item.type !== 'tool_result') {
      said.push(item)
      continue
    }
    flush()
    steps.push(resultStep(item.tool_result))
  }
  flush()
  return steps
}

function toolSteps({ tool_call_id, content = '', content_items = [] }: Message): Step[] {
  const inside = content_items.flatMap((item) => (item.type === 'tool_result' ? [resultStep(item.tool_result)] : []))
  if (inside.length > 0) return inside
  return tool_call_id === undefined ? [] : [resultStep({ call_id: tool_call_id, result: content, content_items })]
}

function resultStep({ call_id, result, content_items = [], is_error }: ToolResult): ResultStep {
  const text = textOf(content_items)
  const beside = content_items.filter((item) => item.type !== 'text' || (result !== text && result !== ''))
  return { kind: 'result', callId: call_id, text: result === '' ? text : result, items: beside, ...(is_error && { isError: true }) }
}

/** All items of a message. Some senders leave the text out of the items because it is in `content`. */
function itemsOf({ content, content_items }: Message): ContentItem[] {
  const items = [...(content_items ?? [])]
  const missing = content !== undefined && content !== '' && !items.some(({ type }) => type === 'text')
  return missing ? [{ type: 'text', text: content }, ...items] : items
}
