import { nextTurn } from '../../core/basics/time.ts'
import type { Principal } from '../../core/ports/access.ts'
import type { Gateway, Hold, StoredResponse } from '../../core/ports/session.ts'
import { turnsBackFrom } from '../../core/reading/conversation.ts'
import { weigh } from '../../core/basics/weight.ts'
import type { ContentItem } from '../../protocol/content.ts'
import { itemsOf, type Message } from '../../protocol/message.ts'
import { urlOf } from '../../wire/openai/media.ts'
import { parseValue } from '../../wire/parse.ts'
import { Answer } from './answer.ts'
import { itemId, placeOf } from './ids.ts'
import { notFound, type Given } from './input.ts'
import { InputItem } from './schema.ts'

export interface ShownItem {
  readonly id: string
  readonly type: string
}

type Turns = Pick<Gateway, 'response'>

export interface ContextOptions {
  readonly principal: Principal
  readonly order: 'asc' | 'desc'
}

/**
 * The conversation before a response, and its own input. Only one response is in memory at a time, and responses beyond the page are
 * not read. In ascending order the whole chain has to be walked first, to find the oldest.
 */
export async function* contextOf(
  gateway: Turns,
  turn: StoredResponse,
  { principal, order }: ContextOptions,
): AsyncGenerator<ShownItem, void> {
  if (order === 'desc') {
    for await (const each of turnsBackFrom(gateway, turn, principal)) yield* itemsIn(each, each === turn).reverse()
    return
  }
  const ids: string[] = []
  for await (const { id } of turnsBackFrom(gateway, turn, principal)) ids.push(id)
  for (const id of ids.reverse()) {
    const each = id === turn.id ? turn : await gateway.response(id, principal)
    if (each) yield* itemsIn(each, each === turn)
  }
}

function itemsIn(turn: StoredResponse, isLast: boolean): ShownItem[] {
  return isLast ? inputOf(turn) : [...inputOf(turn), ...outputOf(turn)]
}

/** The input with every reference replaced by its item. */
export async function withReferences(
  gateway: Gateway,
  input: string | readonly InputItem[],
  principal: Principal,
): Promise<string | InputItem[]> {
  if (typeof input === 'string') return input
  const named = input.flatMap((item, index) => (item.type === 'item_reference' ? [{ id: item.id, param: `input[${index}].id` }] : []))
  if (named.length === 0) return [...input]
  const hold = gateway.hold(principal, 0)
  try {
    const found = await namedItems(gateway, named, { principal, hold })
    return input.map((item) => (item.type === 'item_reference' ? (found.get(item.id) as InputItem) : item))
  } finally {
    hold.close()
  }
}

interface Named {
  readonly id: string
  /** Where the input names it. */
  readonly param: string
}

/** Finds items by their ids. Only one response is in memory at a time, and the memory of found items is counted. */
async function namedItems(
  gateway: Turns,
  named: readonly Named[],
  { principal, hold }: { readonly principal: Principal; readonly hold: Hold },
): Promise<Map<string, InputItem>> {
  const found = new Map<string, InputItem>()
  let bytes = 0
  for (const [responseId, names] of byResponse(named)) {
    const turn = responseId === '' ? undefined : await gateway.response(responseId, principal)
    const items = new Map(turn && itemsIn(turn, false).map((item) => [item.id, item]))
    for (const { id, param } of names) {
      const item = items.get(id)
      if (!item) throw notFound(id, param)
      if (found.has(id)) continue
      hold.grow((bytes += weigh(item)))
      found.set(id, parseValue(InputItem, item))
    }
    await nextTurn()
  }
  return found
}

function byResponse(named: readonly Named[]): Map<string, Named[]> {
  const groups = new Map<string, Named[]>()
  for (const each of named) {
    const responseId = placeOf(each.id)?.responseId ?? ''
    const group = groups.get(responseId)
    if (group) group.push(each)
    else groups.set(responseId, [each])
  }
  return groups
}

/** The output items of a stored response, with the same ids as in its stream. */
function outputOf(turn: StoredResponse): ShownItem[] {
  const answer = new Answer({ id: turn.id, agent: turn.agent, config: turn.config, endedAt: () => 0 })
  answer.readOutput(turn.output, new Set(turn.questions.map(({ id }) => id)))
  return answer.output.map((item) => item.render() as ShownItem)
}

function inputOf({ id, input, given }: StoredResponse): ShownItem[] {
  const shown = [...given.flatMap(shownAnswer), ...input.flatMap(shownMessage)]
  return shown.map(({ prefix, ...item }, index) => ({ ...item, id: itemId(prefix, id, `i${index}`) }))
}

type Unnamed = { readonly prefix: Parameters<typeof itemId>[0]; readonly type: string; readonly [field: string]: unknown }

function shownAnswer(given: Given): Unnamed[] {
  if (given.type === 'tool.result') return [shownResult(given.call_id, given.result, given.content_items)]
  if (given.type !== 'x.approval.response') return []
  const { approval_id, approved, reason = null } = given
  return [{ prefix: 'mcpa', type: 'mcp_approval_response', approval_request_id: approval_id, approve: approved, reason }]
}

function shownResult(call_id: string, text: string, items: readonly ContentItem[] | undefined): Unnamed {
  const output = items ? items.flatMap((item) => shownPart(item, 'input_text')) : text
  return { prefix: 'fco', type: 'function_call_output', call_id, output, status: 'completed' }
}

function shownMessage(message: Message): Unnamed[] {
  const { role, content, content_items, tool_call_id } = message
  if (role === 'tool') return [shownResult(tool_call_id ?? '', content ?? '', content_items)]
  const items = itemsOf(message)
  if (role !== 'assistant') {
    return [{ prefix: 'msg', type: 'message', role, status: 'completed', content: items.flatMap((item) => shownPart(item, 'input_text')) }]
  }
  return items.flatMap(shownSaid)
}

const SAID = { prefix: 'msg', type: 'message', role: 'assistant', status: 'completed' } as const

/** What the assistant said before, according to the client. */
function shownSaid(item: ContentItem): Unnamed[] {
  switch (item.type) {
    case 'thinking': {
      const summary = item.thinking === '' ? [] : [{ type: 'summary_text', text: item.thinking }]
      return [{ prefix: 'rs', type: 'reasoning', summary, ...(item.signature !== undefined && { encrypted_content: item.signature }) }]
    }
    case 'tool_call': {
      const { id: call_id, name, arguments: args } = item.tool_call
      return [{ prefix: 'fc', type: 'function_call', call_id, name, arguments: args, status: 'completed' }]
    }
    case 'text':
      return [{ ...SAID, content: shownPart(item, 'output_text') }]
    case 'tool_result':
    case 'image':
    case 'audio':
    case 'video':
    case 'file':
      return [{ ...SAID, content: [], uamp: { content_items: [item] } }]
  }
}

function shownPart(item: ContentItem, type: 'input_text' | 'output_text'): object[] {
  switch (item.type) {
    case 'text':
      if (item.refusal) return [{ type: 'refusal', refusal: item.text }]
      return [type === 'input_text' ? { type, text: item.text } : { type, text: item.text, annotations: [], logprobs: [] }]
    case 'image': {
      const image_url = urlOf(item.image, `image/${item.format ?? 'png'}`)
      return [{ type: 'input_image', image_url, detail: item.detail ?? 'auto', file_id: null }]
    }
    case 'file': {
      const { file, filename, mime_type } = item
      const source = typeof file === 'string' ? { file_data: urlOf(file, mime_type) } : { file_url: file.url }
      return [{ type: 'input_file', filename, ...source }]
    }
    case 'audio': {
      const data = typeof item.audio === 'string' ? item.audio : ''
      return [{ type: 'input_audio', input_audio: { data, format: item.format ?? 'wav' } }]
    }
    case 'thinking':
    case 'tool_call':
    case 'tool_result':
    case 'video':
      return []
  }
}
