import { weighMessages } from '../../core/basics/weight.ts'
import { turnsBackFrom } from '../../core/reading/conversation.ts'
import type { Action, Principal } from '../../core/ports/access.ts'
import type { Gateway, Hold, InputEvent, Session, StoredResponse } from '../../core/ports/session.ts'
import type { KnownCall } from '../../core/ports/transport.ts'
import { outputMessages } from '../../core/reading/output.ts'
import { isMedia } from '../../protocol/content.ts'
import { fingerprint } from '../../protocol/fingerprint.ts'
import { fieldsOf } from '../../protocol/json.ts'
import { itemsOf, textOf, type Message } from '../../protocol/message.ts'
import type { SessionConfig } from '../../protocol/session-config.ts'
import { idIn, responseOf } from './ids.ts'
import { toWireMessages } from '../../wire/ag-ui/messages.ts'
import type { Part, WireMessage } from './schema.ts'

/** How many ids of its input messages a response remembers. */
const INPUTS = 32

export function aliasOf(agent: string, threadId: string) {
  return { protocol: 'ag-ui', id: `${agent} ${threadId}` }
}

/** The session of a thread: one that AG-UI opened, or one of another protocol if the thread id is its id. */
export async function findThread(
  gateway: Gateway,
  { root, principal }: KnownCall,
  { agent, threadId, action }: { readonly agent: string; readonly threadId: string; readonly action: Action },
): Promise<Session | undefined> {
  const known = await gateway.attach(aliasOf(agent, threadId), principal, action)
  if (known || !threadId.startsWith('sess_')) return known
  const session = await gateway.attach(threadId, principal, action)
  if (session === undefined || session.agent === agent || root) return session
  session.leave()
  return undefined
}

/** What a response remembers of its client's messages: the ids of the newest, and a fingerprint of all. */
export function memoryOf(messages: readonly WireMessage[], shown: readonly WireMessage[] = messages) {
  const counted = shown.filter(isCounted)
  return { inputs: messages.slice(-INPUTS).map(({ id }) => id), count: counted.length, digest: digestOf(counted) }
}

/** What a response remembers of the run that asked for it. */
export function rememberedIn({ extensions }: SessionConfig) {
  const { runId, inputs, count, digest } = fieldsOf(extensions?.['ag-ui'])
  return { runId, inputs: new Set<unknown>(Array.isArray(inputs) ? inputs : []), count: Number(count ?? 0), digest }
}

/**
 * The new messages of a run. Undefined: the client changed earlier ones, so its messages replace what the session remembers.
 * `joins`: the client says that it has not the earlier ones.
 */
export function addedTo(
  turn: StoredResponse | undefined,
  messages: readonly WireMessage[],
  joins: boolean,
): readonly WireMessage[] | undefined {
  if (!turn) return messages
  const { runId, inputs, count, digest } = rememberedIn(turn.config)
  if (!messages.some(({ id }) => inputs.has(id) || responseOf(id) !== undefined)) {
    // Clients send their whole conversation: without a known message it is another one, as after an edit of the first message. What
    // came over another protocol they cannot have, and no conversation begins with a result.
    const isPart = runId === undefined || messages.length === 0 || messages[0]?.role === 'tool'
    return joins || isPart ? messages : undefined
  }
  const counted = messages.filter(isCounted)
  if (digestOf(counted.slice(0, count)) !== digest) return undefined
  const rest = counted.slice(count)
  const next = rest.findIndex(({ id }) => responseOf(id) !== turn.id)
  const [answer, added] = next < 0 ? [rest, []] : [rest.slice(0, next), rest.slice(next)]
  return isAsTold(turn, answer) && !added.some(({ id }) => responseOf(id) !== undefined) ? added : undefined
}

/** True if the client sends an answer back unchanged. For an answer with media only calls and results are compared. */
function isAsTold({ output, given }: StoredResponse, answer: readonly WireMessage[]): boolean {
  const words = answer.flatMap((message) => (message.role === 'assistant' ? [contentKey(message.content)] : []))
  if (!output.some(isMedia) && words.join('') !== textOf(output)) return false
  const calls = new Set(answer.flatMap((message) => (message.role === 'assistant' ? (message.toolCalls ?? []).map(({ id }) => id) : [])))
  const results = new Map(answer.flatMap((message) => (message.role === 'tool' ? [[message.toolCallId, message.content] as const] : [])))
  const brought = new Set(given.map((event) => ('call_id' in event ? event.call_id : undefined)))
  return output.every((item) => {
    if (item.type === 'tool_call') return calls.has(item.tool_call.id)
    if (item.type !== 'tool_result' || brought.has(item.tool_result.call_id)) return true
    const { call_id, result, content_items } = item.tool_result
    return results.has(call_id) && (content_items !== undefined || contentKey(results.get(call_id)) === result)
  })
}

/** True for messages of the conversation; clients may show or drop the others as they like. */
function isCounted({ role }: WireMessage): boolean {
  return role !== 'activity' && role !== 'reasoning'
}

function digestOf(messages: readonly WireMessage[]): string {
  const fields = messages.map((message) => [
    message.id,
    message.role,
    'content' in message ? contentKey(message.content) : '',
    message.role === 'assistant' ? message.toolCalls?.map(({ id, function: made }) => [id, made.name, made.arguments]) : [],
  ])
  return fingerprint(JSON.stringify(fields))
}

/** Gives the same key for both spellings of media. */
function contentKey(content: string | readonly Part[] | null | undefined): string {
  if (content == null || typeof content === 'string') return content ?? ''
  return content
    .map((part) => (part.type === 'text' ? part.text : part.type === 'binary' ? (part.data ?? part.url) : part.source.value))
    .join('')
}

/** One response of a conversation, with its input. */
interface Told {
  readonly turn: string
  readonly messages: readonly Message[]
}

export interface HistoryOptions {
  readonly principal: Principal
  readonly hold?: Hold
}

/** A conversation up to this response, oldest first. `hold` counts it while it is read, and refuses one for which there is no room. */
export async function historyOf(gateway: Gateway, last: string, { principal, hold }: HistoryOptions): Promise<Told[]> {
  const history: Told[] = []
  let bytes = 0
  for await (const { id, input, output } of turnsBackFrom(gateway, await gateway.response(last, principal), principal)) {
    const messages = [...input, ...outputMessages(output)]
    hold?.grow((bytes += weighMessages(messages)))
    history.push({ turn: id, messages })
  }
  return history.reverse()
}

/**
 * The conversation for a client that joins it, with its own messages last. It comes in two snapshots: clients keep the messages they
 * have in place and append others, so the first snapshot leaves out the client's own.
 */
export function snapshotsOf(history: readonly Told[], messages: readonly WireMessage[]): [before: WireMessage[], whole: WireMessage[]] {
  const before = history.flatMap(({ turn, messages: of }) => {
    let place = 0
    return toWireMessages(of, () => idIn(turn, `h${place++}`))
  }) as WireMessage[]
  const own = messages.map((message) => Object.fromEntries(Object.entries(message).filter(([, value]) => value !== null)) as WireMessage)
  return [before, [...before, ...own]]
}

/** A message as the input events that a client would send. */
export function inputEvents(message: Message, newId: () => string): InputEvent[] {
  return itemsOf(message).flatMap((item): InputEvent[] => {
    const event_id = newId()
    switch (item.type) {
      case 'text':
        return [{ type: 'input.text', event_id, text: item.text, ...(message.role !== 'tool' && { role: message.role }) }]
      case 'image':
        return [{ ...item, type: 'input.image', event_id }]
      case 'audio':
        return [{ type: 'input.audio', event_id, audio: item.audio, format: item.format ?? 'wav', is_final: true }]
      case 'video':
        return [{ ...item, type: 'input.video', event_id }]
      case 'file':
        return [{ ...item, type: 'input.file', event_id }]
      case 'thinking':
      case 'tool_call':
      case 'tool_result':
        return []
    }
  })
}
