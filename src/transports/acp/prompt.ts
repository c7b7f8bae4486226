import { withoutOwnTools } from '../../core/edge/asked.ts'
import type { AgentPort } from '../../core/ports/agent.ts'
import type { InputEvent } from '../../core/ports/session.ts'
import type { Tool } from '../../core/ports/skill.ts'
import { stopReason } from '../../core/reading/response-fold.ts'
import { toolDefinition } from '../../core/tools/tool.ts'
import type { EventOf, Unsent } from '../../protocol/events.ts'
import { gatherInput } from '../../protocol/gather-input.ts'
import { fieldsOf, type Slot } from '../../protocol/json.ts'
import type { Message } from '../../protocol/message.ts'
import type { SessionConfig } from '../../protocol/session-config.ts'
import { formatOf, type ContentBlock } from '../../wire/acp/blocks.ts'
import { paidIn } from '../../wire/payment.ts'
import type { RpcId } from '../../wire/json-rpc.ts'
import type { Terminals } from './terminals.ts'

/** Characters of a title. */
const TITLE = 80

/** What came with a prompt. */
export interface Beside {
  readonly payment: string | undefined
  /** How often it was passed on, as its sender says. */
  readonly hops: unknown
}

/** A prompt and the response that answers it. */
export interface Prompting {
  /** The `session/prompt` that waits for its answer. `undefined`: it was answered with a demand for payment, and the response waits for that. */
  id: RpcId | undefined
  /** The response that answers it. */
  readonly response: string | null
  /** What it pays with, until the agent asks for payment. */
  payment: string | undefined
  /** Recognizes the same prompt when it comes again with a payment. */
  readonly isSame: (blocks: readonly ContentBlock[]) => boolean
  /** The title that it gives to a session without one. */
  readonly title: string | undefined
  /** The client's tools that the agent knows of. */
  readonly offered: ReadonlySet<string>
  /** The client's terminals, if it has any. */
  readonly terminals: Terminals | undefined
  /** The client shows the prompt itself. */
  shown: boolean
  /** The client has cancelled it, and its response is about to end. */
  cancelled: boolean
}

/** Recognizes the same prompt. */
export function sameAs(blocks: readonly ContentBlock[]): Prompting['isSame'] {
  const words = JSON.stringify(blocks)
  return (others) => JSON.stringify(others) === words
}

/** The prompt of a response that another connection asked for. */
export function promptOf(response: string, heard: readonly Message[]): Prompting {
  const isSame = (blocks: readonly ContentBlock[]): boolean => {
    const inputs = toInputs(blocks).map((input): InputEvent => ({ ...input, event_id: '' }))
    return wordsOf(gatherInput(inputs, () => '').messages) === wordsOf(heard)
  }
  const untold = { payment: undefined, title: undefined, terminals: undefined }
  return { id: undefined, response, isSame, offered: new Set(), shown: false, cancelled: false, ...untold }
}

/** Media have ids of their own in each message. */
function wordsOf(messages: readonly Message[]): string {
  const items = messages.flatMap(({ content, content_items = [{ type: 'text', text: content ?? '' }] }) => content_items)
  return JSON.stringify(items.map((item) => ({ ...item, content_id: undefined })))
}

/** What a prompt asks of its response, and the names of the client's tools that it offers: those that the agent has not itself. */
export function responseFor(agent: AgentPort | undefined, config: SessionConfig, ofClient: Iterable<Tool>) {
  const offered = withoutOwnTools(agent, [...ofClient].map(toolDefinition))
  const tools = [...withoutOwnTools(agent, config.tools ?? []), ...offered]
  const acp = { ...fieldsOf(config.extensions?.['acp']), prompt: true }
  const response = { ...(tools.length > 0 && { tools }), extensions: { ...config.extensions, acp } }
  return { response, offered: new Set(offered.map((tool) => tool.function.name)) }
}

/** A prompt as inputs of one message: a text with mentions in their places, the content of the mentions below it, then media. */
export function toInputs(blocks: readonly ContentBlock[]): Unsent<InputEvent>[] {
  let text = ''
  let context = ''
  const media: Unsent<InputEvent>[] = []
  for (const block of blocks) {
    switch (block.type) {
      case 'text':
        text += block.text
        break
      case 'resource_link':
        text += mention(block.uri, block.name)
        break
      case 'image':
        media.push({ type: 'input.image', image: block.data, format: formatOf(block.mimeType) })
        break
      case 'audio':
        media.push({ type: 'input.audio', audio: block.data, format: formatOf(block.mimeType), is_final: true })
        break
      case 'resource': {
        const { resource } = block
        const { uri, mimeType } = resource
        const filename = uri.slice(uri.lastIndexOf('/') + 1) || uri
        text += mention(uri, filename)
        if ('text' in resource) context += `\n<context ref="${uri}">\n${resource.text}\n</context>`
        else media.push({ type: 'input.file', file: resource.blob, filename, mime_type: mimeType ?? 'application/octet-stream' })
      }
    }
  }
  const said = text + context
  return said === '' && media.length > 0 ? media : [{ type: 'input.text', text: said }, ...media]
}

/** The title of a session that begins with this prompt. */
export function titleOf(blocks: readonly ContentBlock[]): string | undefined {
  const text = blocks.map((block) => (block.type === 'text' ? block.text : '')).join('')
  return text.trim().split('\n')[0]?.slice(0, TITLE)
}

function mention(uri: string, name: string): string {
  return `[@${name}](${uri})`
}

/** ACP, Stop Reasons. Everything else is the normal end of a turn. */
const STOP_REASONS = new Map<unknown, string>([
  ['length', 'max_tokens'],
  ['content_filter', 'refusal'],
  ['rejected', 'refusal'],
  ['refusal', 'refusal'],
])

/** The answer to a prompt whose response has ended. */
export function ending(event: EventOf<'response.done' | 'response.cancelled'>): Slot {
  if (event.type === 'response.cancelled') return { stopReason: 'cancelled' }
  const { response_id: responseId, signature } = event
  const { usage, extensions } = event.response
  const uamp = { responseId, ...(usage && { usage }), ...(signature !== undefined && { signature }), ...paidIn(extensions) }
  // A remote ACP agent may give a reason that only ACP has.
  const own = fieldsOf(extensions?.['acp'])['stopReason'] === 'max_turn_requests' ? 'max_turn_requests' : undefined
  return { stopReason: own ?? STOP_REASONS.get(stopReason(event)) ?? 'end_turn', _meta: { uamp } }
}
