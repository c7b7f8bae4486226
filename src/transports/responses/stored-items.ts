import type { Principal } from '../../core/ports/access.ts'
import type { Gateway, StoredTurn } from '../../core/ports/session.ts'
import type { ContentItem } from '../../protocol/content.ts'
import { itemsOf, type Message } from '../../protocol/message.ts'
import { urlOf } from '../../wire/openai/media.ts'
import { parseValue } from '../../wire/openai/parse.ts'
import { Answer } from './answer.ts'
import { itemId, placeOf } from './ids.ts'
import { notFound, type Given } from './input.ts'
import { InputItem } from './schema.ts'

/** As many responses of a conversation are looked at. */
const TURNS = 512

export interface ShownItem {
  readonly id: string
  readonly type: string
}

/** Everything a response was made from: the conversation that it goes on from, then its own input. Oldest first. */
export async function contextOf(gateway: Gateway, turn: StoredTurn, principal: Principal): Promise<ShownItem[]> {
  const items = [inputOf(turn)]
  let parent = turn.parent
  for (let count = 0; parent !== null && count < TURNS; count++) {
    const before: StoredTurn | undefined = await gateway.turn(parent, principal)
    if (!before) break
    items.unshift(inputOf(before), outputOf(before))
    parent = before.parent
  }
  return items.flat()
}

/** Items that are named by their id, in their place. */
export async function withReferences(
  gateway: Gateway,
  input: string | readonly InputItem[],
  principal: Principal,
): Promise<string | InputItem[]> {
  if (typeof input === 'string') return input
  const turns = new Map<string, Promise<StoredTurn | undefined>>()
  const resolve = async (id: string, param: string): Promise<InputItem> => {
    const responseId = placeOf(id)?.responseId
    if (responseId === undefined) throw notFound(id, param)
    if (!turns.has(responseId)) turns.set(responseId, gateway.turn(responseId, principal))
    const turn = await turns.get(responseId)
    const found = turn && [...inputOf(turn), ...outputOf(turn)].find((item) => item.id === id)
    if (!found) throw notFound(id, param)
    return parseValue(InputItem, found)
  }
  return Promise.all(input.map((item, index) => (item.type === 'item_reference' ? resolve(item.id, `input[${index}].id`) : item)))
}

/** The items that a stored response answered with: the same, under the same ids, as when it was streamed. */
function outputOf(turn: StoredTurn): ShownItem[] {
  const answer = new Answer({ id: turn.id, agent: turn.agent, config: turn.config, endedAt: () => 0 })
  answer.readOutput(turn.output, new Set(turn.questions.map(({ id }) => id)))
  return answer.output.map((item) => item.render() as ShownItem)
}

function inputOf({ id, input, given }: StoredTurn): ShownItem[] {
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

/** What a client says that an assistant said before. */
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
      return [{ prefix: 'msg', type: 'message', role: 'assistant', status: 'completed', content: shownPart(item, 'output_text') }]
    default: {
      const said = { prefix: 'msg', type: 'message', role: 'assistant', status: 'completed' } as const
      return [{ ...said, content: [], uamp: { content_items: [item] } }]
    }
  }
}

function shownPart(item: ContentItem, type: 'input_text' | 'output_text'): object[] {
  switch (item.type) {
    case 'text':
      if (item.refusal) return [{ type: 'refusal', refusal: item.text }]
      return [type === 'input_text' ? { type, text: item.text } : { type, text: item.text, annotations: [], logprobs: [] }]
    case 'image':
      return [
        {
          type: 'input_image',
          image_url: urlOf(item.image, `image/${item.format ?? 'png'}`),
          detail: item.detail ?? 'auto',
          file_id: null,
        },
      ]
    case 'file': {
      const { file, filename, mime_type } = item
      return [
        { type: 'input_file', filename, ...(typeof file === 'string' ? { file_data: urlOf(file, mime_type) } : { file_url: file.url }) },
      ]
    }
    case 'audio':
      return [
        { type: 'input_audio', input_audio: { data: typeof item.audio === 'string' ? item.audio : '', format: item.format ?? 'wav' } },
      ]
    default:
      return []
  }
}
